// Health panel: write queue, memory, newest snapshot, errors and followers.

const numberFormat = new Intl.NumberFormat("en");
const bytesFormat = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const ageFormat = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

const AGE_UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const WARNING_SHARE = 0.5; // of the write queue's capacity

/** Show the statistics of the service; entries that need attention are marked. */
export function showHealth(root, stats) {
  const { queue, snapshot, errors, feed, memory_bytes: memory } = stats;
  const failures = errors.failed_batches + errors.failed_requests;
  const entries = {
    queue: [`${numberFormat.format(queue.requests)} waiting`, queue.requests > WARNING_SHARE * queue.max_requests],
    memory: [memory === null ? "unknown" : formatBytes(memory), false],
    snapshot: [describeSnapshot(snapshot), snapshot.failed],
    errors: [failures ? numberFormat.format(failures) : "none", failures > 0],
    followers: [numberFormat.format(feed.followers), false],
  };
  for (const [name, [text, needsAttention]] of Object.entries(entries)) {
    const element = root.querySelector(`#health-${name}`);
    element.textContent = text;
    element.classList.toggle("attention", needsAttention);
  }
}

function describeSnapshot(snapshot) {
  if (snapshot.failed) return "failed; see the log";
  if (!snapshot.sequence) return "none yet";
  return formatAge(snapshot.age_seconds);
}

function formatAge(seconds) {
  const [unit, length] = AGE_UNITS.find(([, length]) => seconds >= length) ?? AGE_UNITS.at(-1);
  return ageFormat.format(-Math.floor(seconds / length), unit);
}

function formatBytes(bytes) {
  return bytes >= 1e9 ? `${bytesFormat.format(bytes / 1e9)} GB` : `${bytesFormat.format(bytes / 1e6)} MB`;
}
