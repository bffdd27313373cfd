// What became of a new target, in words under the gauge, with what one may do next: undo it, ask again, keep the newer one.
import { note } from "./send.js";

const UNDO = 20_000; // milliseconds in which a new target can be taken back with one press

export const isOvertaken = ({ status, error }) => status === 409 && error.desired !== undefined;

export const refused = (answer, want, from, settle) => {
  const { status, error, unsure } = answer;
  if (unsure) {
    const text = `${status ? `The console answered ${status}` : "No answer came"}, so it is not known whether the target is ${want} now.`;
    return note(`${text} To ask again does no harm.`, "red", "i-critical", [[`Ask for ${want}`, () => settle(want)]]);
  }
  if (!isOvertaken(answer)) return note(`Not changed. ${error.message}`);
  const text = `Not changed: the target was set from ${from} to ${error.desired} by ${error.set_by} while you moved it to ${want}.`;
  return note(`${text} Nothing was launched.`, "red", "i-critical",
    [[`Ask for ${want}`, () => settle(want, String(error.target_revision))], [`Keep ${error.desired}`, () => {}]]);
};
export const done = (want, from, { desired, setBy }, settle) => {
  if (desired !== want) return note(`Target set to ${want}. ${setBy} has set it to ${desired} since.`, "", "i-check");
  const words = note(`Target set to ${want}.`, "", "i-check", [["Undo", () => settle(from)]]);
  setTimeout(() => words.remove(), UNDO);
  return words;
};
