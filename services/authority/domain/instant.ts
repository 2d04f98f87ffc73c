/** An instant as people read it, RFC 3339 in UTC: the core has no clock to ask. */
const DAY_MS = 86_400_000;

/** From milliseconds since 1970, to the millisecond. Years 1970 to 9999. */
export function instant(atMs: number): string {
  const day = Math.floor(atMs / DAY_MS);
  const ms = atMs - day * DAY_MS;
  const { year, month, dayOfMonth } = civil(day);
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor(ms / 60_000) % 60;
  const seconds = Math.floor(ms / 1_000) % 60;
  const date = `${padded(year, 4)}-${padded(month, 2)}-${padded(dayOfMonth, 2)}`;
  const time = `${padded(hours, 2)}:${padded(minutes, 2)}:${padded(seconds, 2)}`;
  return `${date}T${time}.${padded(ms % 1_000, 3)}Z`;
}

/** Days since 1970 as a date: years begin in March, so that leap days end them (Hinnant, civil_from_days). */
function civil(day: number): { year: number; month: number; dayOfMonth: number } {
  const shifted = day + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1_460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear =
    dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    dayOfMonth: dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1,
  };
}

function padded(value: number, digits: number): string {
  return String(value).padStart(digits, '0');
}
