// CUDA kernels of the view operator: the counterparts of _kernels.py, over the same neighbor arena.
// One warp processes a row, its lanes the columns, 128 at a time; a row with very many neighbors gets a thread block.

struct Links {
    const long long *begin;
    const int *count;
    const double *strength;
    const int *neighbor;
    const float *weight;
    int slot_words;  // slot stride: 4-byte words from one slot to the next
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

// Kernels are launched with scalar and pointer arguments; the ARGUMENTS macros assemble the structs from them.
#define LINKS_PARAMETERS                                                                                  \
    const long long *begin, const int *count, const double *strength, const int *neighbor,                \
        const float *weight, int slot_words
#define STEP_PARAMETERS                                                                                   \
    const float *source, float *target, long long source_stride, long long target_stride, int width,      \
        const float *center, double tau, double on_step, double on_source, double on_target
#define LINKS_ARGUMENTS {begin, count, strength, neighbor, weight, slot_words}
#define STEP_ARGUMENTS                                                                                    \
    {source, target, source_stride, target_stride, width, center, tau, on_step, (float)on_source, (float)on_target}

// Sum 4 columns (`column`, +32, +64, +96) over every `stride`-th neighbor of a row, starting at neighbor `first`.
__device__ __forceinline__ void gather(const Links &links, const Step &step, long long row, int first, int stride,
                                       int column, float total[4]) {
    const int *neighbor = links.neighbor + links.begin[row] * links.slot_words;
    const float *weight = links.weight + links.begin[row] * links.slot_words;
    const long long count = links.count[row];
    total[0] = total[1] = total[2] = total[3] = 0;
#pragma unroll 4
    for (long long slot = first; slot < count; slot += stride) {
        const float *other = step.source + neighbor[slot * links.slot_words] * step.source_stride;
        const float share = weight[slot * links.slot_words];
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (column + 32 * i < step.width) total[i] += share * other[column + 32 * i];
    }
}

// Write one entry of the target, computed from the neighbor sum of its column.
__device__ __forceinline__ void write_entry(const Links &links, const Step &step, long long row, int column,
                                            float total) {
    float *written = step.target + row * step.target_stride + column;
    const float own = step.source[row * step.source_stride + column];
    const float scale = step.on_step / (links.strength[row] + step.tau);
    *written = (total - step.center[column]) * scale + step.on_source * own + step.on_target * *written;
}

// One warp per row. Rows with more than `hub_degree` neighbors are left to combine_hubs; those without edges become 0.
extern "C" __global__ void combine(LINKS_PARAMETERS, STEP_PARAMETERS, long long rows, int hub_degree) {
    const Links links = LINKS_ARGUMENTS;
    const Step step = STEP_ARGUMENTS;
    const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    if (row >= rows || count[row] > hub_degree) return;
    float total[4];
    for (int first = threadIdx.x; first < width; first += 128) {
        gather(links, step, row, 0, 1, first, total);
        for (int i = 0; i < 4 && first + 32 * i < width; i++) {
            if (count[row]) write_entry(links, step, row, first + 32 * i, total[i]);
            else target[row * target_stride + first + 32 * i] = 0;
        }
    }
}

// One block of 32 warps per hub row: each warp sums every 32nd neighbor, then four warps add the partial sums.
extern "C" __global__ void combine_hubs(LINKS_PARAMETERS, STEP_PARAMETERS, const long long *hubs) {
    const Links links = LINKS_ARGUMENTS;
    const Step step = STEP_ARGUMENTS;
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
            write_entry(links, step, hubs[blockIdx.x], first + own, sum);
        }
        __syncthreads();
    }
}

// target <- A source for one column in double precision, one warp per row.
extern "C" __global__ void multiply(LINKS_PARAMETERS, const double *source, double *target, long long rows) {
    const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    if (row >= rows) return;
    double total = 0;
    for (int slot = threadIdx.x; slot < count[row]; slot += 32)
        total += (double)weight[(begin[row] + slot) * slot_words] * source[neighbor[(begin[row] + slot) * slot_words]];
    for (int half = 16; half; half /= 2) total += __shfl_down_sync(0xffffffffu, total, half);
    if (!threadIdx.x) target[row] = total;
}
