// The points of the map in columns. A vertex is known by its arrival number, which is never used again.

export class Points {
  constructor() {
    this.clear();
    this.epoch = this.tick = undefined;
    this.left = -Infinity; // when the points left for new places
  }

  clear() {
    this.slot = new Map();
    this.id = [];
    this.x = [];
    this.y = [];
    this.community = [];
    this.label = [];
    this.arrival = [];
    this.fromX = [];
    this.fromY = [];
  }

  get size() {
    return this.slot.size;
  }

  /** Take in an answer; the slots of points that are new and of those that moved. */
  take(answer) {
    const first = this.epoch === undefined;
    const before = this.slot;
    const [oldX, oldY] = [this.x, this.y];
    if (answer.whole) this.clear();
    for (const arrival of answer.gone) this.remove(arrival);
    const fresh = [];
    const moved = [];
    const points = answer.points;
    for (let i = 0; i < points.id.length; i++) {
      const arrival = points.arrival[i];
      let slot = this.slot.get(arrival);
      if (slot === undefined) {
        slot = this.id.length;
        if (!first && !before.has(arrival)) fresh.push(slot);
        this.slot.set(arrival, slot);
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
    if (answer.whole) this.comeFrom(before, oldX, oldY);
    const changed = answer.whole || points.id.length > 0 || answer.gone.length > 0;
    this.epoch = answer.epoch;
    this.tick = answer.tick;
    return { fresh, moved, changed };
  }

  /** All points have got new places: remember where they were, so that they can be seen to go there. */
  comeFrom(before, oldX, oldY) {
    this.fromX = [...this.x];
    this.fromY = [...this.y];
    for (const [arrival, slot] of this.slot) {
      const old = before.get(arrival);
      if (old !== undefined) [this.fromX[slot], this.fromY[slot]] = [oldX[old], oldY[old]];
    }
    this.left = performance.now();
  }

  remove(arrival) {
    const slot = this.slot.get(arrival);
    if (slot === undefined) return;
    this.slot.delete(arrival);
    this.x[slot] = this.y[slot] = NaN; // the other slots keep their numbers
  }

  /** All slots that are in use. */
  slots() {
    return this.slot.values();
  }

  /** The smallest box around all points. */
  box() {
    let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const slot of this.slots()) {
      left = Math.min(left, this.x[slot]);
      right = Math.max(right, this.x[slot]);
      bottom = Math.min(bottom, this.y[slot]);
      top = Math.max(top, this.y[slot]);
    }
    return left <= right ? { left, right, bottom, top } : { left: -1, right: 1, bottom: -1, top: 1 };
  }

  /** The slot nearest to a place, if it is not too far away. */
  nearest(x, y, farthest) {
    let best;
    let least = farthest ** 2;
    for (const slot of this.slots()) {
      const distance = (this.x[slot] - x) ** 2 + (this.y[slot] - y) ** 2;
      if (distance < least) [best, least] = [slot, distance];
    }
    return best;
  }

  /** Ids that begin with a text, or contain it where too few do. */
  like(text, most) {
    const begins = [];
    const contains = [];
    for (const slot of this.slots()) {
      const id = String(this.id[slot]);
      if (id.startsWith(text)) begins.push(id);
      else if (contains.length < most && id.includes(text)) contains.push(id);
      if (begins.length >= most) break;
    }
    return [...begins, ...contains].slice(0, most);
  }
}
