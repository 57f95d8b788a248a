// The points of the map as columns. A point is identified by the arrival number of its vertex, which is never reused;
// its slot is its index in the columns.

export class PointStore {
  constructor() {
    this.clear();
    this.epoch = this.tick = undefined;
    this.transitionStart = -Infinity; // when all points last started to move to new positions
  }

  clear() {
    this.slotByArrival = new Map();
    this.id = [];
    this.x = [];
    this.y = [];
    this.community = [];
    this.label = [];
    this.arrival = [];
    this.previousX = [];
    this.previousY = [];
  }

  get size() {
    return this.slotByArrival.size;
  }

  /** Apply a response of the map endpoint; return the slots of added and moved points, and whether anything changed. */
  update(response) {
    const isFirst = this.epoch === undefined;
    const oldSlots = this.slotByArrival;
    const [oldX, oldY] = [this.x, this.y];
    if (response.whole) this.clear();
    for (const arrival of response.gone) this.remove(arrival);
    const added = [];
    const moved = [];
    const points = response.points;
    for (let i = 0; i < points.id.length; i++) {
      const arrival = points.arrival[i];
      let slot = this.slotByArrival.get(arrival);
      if (slot === undefined) {
        slot = this.id.length;
        if (!isFirst && !oldSlots.has(arrival)) added.push(slot);
        this.slotByArrival.set(arrival, slot);
      } else if (this.x[slot] !== points.x[i] || this.y[slot] !== points.y[i]) {
        moved.push(slot);
      }
      this.id[slot] = points.id[i];
      this.x[slot] = points.x[i];
      this.y[slot] = points.y[i];
      this.community[slot] = points.community[i];
      this.label[slot] = points.label[i];
      this.arrival[slot] = arrival;
    }
    if (response.whole) this.startTransition(oldSlots, oldX, oldY);
    const changed = response.whole || points.id.length > 0 || response.gone.length > 0;
    this.epoch = response.epoch;
    this.tick = response.tick;
    return { added, moved, changed };
  }

  /** Store the previous positions of all points, so that the move to the new ones can be animated. */
  startTransition(oldSlots, oldX, oldY) {
    this.previousX = [...this.x];
    this.previousY = [...this.y];
    for (const [arrival, slot] of this.slotByArrival) {
      const oldSlot = oldSlots.get(arrival);
      if (oldSlot !== undefined) [this.previousX[slot], this.previousY[slot]] = [oldX[oldSlot], oldY[oldSlot]];
    }
    this.transitionStart = performance.now();
  }

  remove(arrival) {
    const slot = this.slotByArrival.get(arrival);
    if (slot === undefined) return;
    this.slotByArrival.delete(arrival);
    this.x[slot] = this.y[slot] = NaN; // slots are not reused, so that other slots keep their numbers
  }

  /** Return whether a point has a label. */
  hasLabels() {
    return this.label.some((label) => label !== null);
  }

  /** Iterate over all slots in use. */
  slots() {
    return this.slotByArrival.values();
  }

  /** Return the bounding box of all points. */
  boundingBox() {
    let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const slot of this.slots()) {
      left = Math.min(left, this.x[slot]);
      right = Math.max(right, this.x[slot]);
      bottom = Math.min(bottom, this.y[slot]);
      top = Math.max(top, this.y[slot]);
    }
    return left <= right ? { left, right, bottom, top } : { left: -1, right: 1, bottom: -1, top: 1 };
  }

  /** Return the slot nearest to a position within a maximum distance, or undefined; `stretch` scales x. */
  findNearest(x, y, maxDistance, stretch) {
    let best;
    let bestSquared = maxDistance ** 2;
    for (const slot of this.slots()) {
      const squared = (stretch * (this.x[slot] - x)) ** 2 + (this.y[slot] - y) ** 2;
      if (squared < bestSquared) [best, bestSquared] = [slot, squared];
    }
    return best;
  }

  /** Return ids that start with a text, followed by ids that contain it. */
  searchIds(text, limit) {
    const starting = [];
    const containing = [];
    for (const slot of this.slots()) {
      const id = String(this.id[slot]);
      if (id.startsWith(text)) starting.push(id);
      else if (containing.length < limit && id.includes(text)) containing.push(id);
      if (starting.length >= limit) break;
    }
    return [...starting, ...containing].slice(0, limit);
  }
}
