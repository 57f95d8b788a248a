// CUDA kernels of the view operator: the counterparts of _kernels.py, over the same neighbor arena.
// One warp processes a row, its lanes the columns, 128 at a time; a row with very many neighbors gets a thread block.

struct Links {
    const long long *begin;
    const int *count;
    const double *strength;
    const int *neighbor;
    const float *weight;
    int apart;  // slot stride: 4-byte words from one slot to the next
};

struct Step {  // target <- on_step * W source + on_source * source + on_target * target
    const float *source;
    float *target;
    long long source_stride, target_stride;  // floats from one row to the next
    int width;
    const float *center;
    double tau, on_step;
    float on_source, on_target;
};

// Kernels are launched with scalar and pointer arguments; THE_LINKS and THE_STEP assemble the structs from them.
#define LINKS                                                                                             \
    const long long *begin, const int *count, const double *strength, const int *neighbor,               \
        const float *weight, int apart
#define STEP                                                                                              \
    const float *source, float *target, long long source_stride, long long target_stride, int width,     \
        const float *center, double tau, double on_step, double on_source, double on_target
#define THE_LINKS {begin, count, strength, neighbor, weight, apart}
#define THE_STEP                                                                                          \
    {source, target, source_stride, target_stride, width, center, tau, on_step, (float)on_source, (float)on_target}

// Sum 4 columns (`column`, +32, +64, +96) over every `every`-th neighbor of a row, starting at neighbor `first`.
__device__ __forceinline__ void gather(const Links &links, const Step &step, long long row, int first, int every,
                                       int column, float total[4]) {
    const int *neighbor = links.neighbor + links.begin[row] * links.apart;
    const float *weight = links.weight + links.begin[row] * links.apart;
    const long long count = links.count[row];
    total[0] = total[1] = total[2] = total[3] = 0;
#pragma unroll 4
    for (long long slot = first; slot < count; slot += every) {
        const float *other = step.source + neighbor[slot * links.apart] * step.source_stride;
        const float share = weight[slot * links.apart];
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (column + 32 * i < step.width) total[i] += share * other[column + 32 * i];
    }
}

// Turn the neighbor sum of one column into the new entry of the target.
__device__ __forceinline__ void finish(const Links &links, const Step &step, long long row, int column, float total) {
    float *written = step.target + row * step.target_stride + column;
    const float own = step.source[row * step.source_stride + column];
    const float scale = step.on_step / (links.strength[row] + step.tau);
    *written = (total - step.center[column]) * scale + step.on_source * own + step.on_target * *written;
}

// One warp per row. Rows with more than `many` neighbors are left to combine_hubs; rows without edges become zero.
extern "C" __global__ void combine(LINKS, STEP, long long rows, int many) {
    const Links links = THE_LINKS;
    const Step step = THE_STEP;
    const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    if (row >= rows || count[row] > many) return;
    float total[4];
    for (int first = threadIdx.x; first < width; first += 128) {
        gather(links, step, row, 0, 1, first, total);
        for (int i = 0; i < 4 && first + 32 * i < width; i++) {
            if (count[row]) finish(links, step, row, first + 32 * i, total[i]);
            else target[row * target_stride + first + 32 * i] = 0;
        }
    }
}

// One block of 32 warps per hub row: each warp sums every 32nd neighbor, then four warps add the partial sums.
extern "C" __global__ void combine_hubs(LINKS, STEP, const long long *hubs) {
    const Links links = THE_LINKS;
    const Step step = THE_STEP;
    __shared__ float parts[32][128];
    float total[4];
    for (int first = 0; first < width; first += 128) {
        gather(links, step, hubs[blockIdx.x], threadIdx.y, 32, first + threadIdx.x, total);
        for (int i = 0; i < 4; i++) parts[threadIdx.y][threadIdx.x + 32 * i] = total[i];
        __syncthreads();
        const int own = threadIdx.x + 32 * threadIdx.y;
        if (own < 128 && first + own < width) {
            float sum = 0;
            for (int warp = 0; warp < 32; warp++) sum += parts[warp][own];
            finish(links, step, hubs[blockIdx.x], first + own, sum);
        }
        __syncthreads();
    }
}

// target <- A source for one column in double precision, one warp per row.
extern "C" __global__ void multiply(LINKS, const double *source, double *target, long long rows) {
    const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    if (row >= rows) return;
    double total = 0;
    for (int slot = threadIdx.x; slot < count[row]; slot += 32)
        total += (double)weight[(begin[row] + slot) * apart] * source[neighbor[(begin[row] + slot) * apart]];
    for (int half = 16; half; half /= 2) total += __shfl_down_sync(0xffffffffu, total, half);
    if (!threadIdx.x) target[row] = total;
}
