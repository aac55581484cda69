// Package ranking adds what members answered to `quorate top`, their rankings of prefixes of keys and of clients, and ranks
// the sum: for the command, which asks each member, and for a console, whose member asks the others.
//
// Summarize does it, for a View. It adds by the sketches of package heavy, so that errors are bounded, and told: Row.Most and
// Summary.Floor.
//
// Invariants:
//  1. Whatever members say, a name is cut and no sum overflows. Texts are as members sent them: whoever shows them makes them
//     printable.
//
// All functions may be called concurrently.
package ranking
