// Package console shows a cluster to people, in a browser: pages that a member renders from its own API.
//
// The console is a client of its member, within the same process. Each call of a page goes through the same checks as a call
// that came over a connection, with the token or the certificate of the user who looks: the console has no right of its own.
// Pages are HTML, complete without scripts. A small script keeps the sections of a page up to date by server-sent events while
// its tab is visible.
//
// The main type is Console; packages below it are the pages, and package page is how they are written.
//
// Invariants:
//  1. A page changes nothing: its calls pass an allow-list of methods that read. Actions have handlers of their own, which do
//     not exist unless the console was started to administer.
//  2. A page ends within its deadline, with what it has: a section that is missing says why, and shows what was known last.
//  3. Live sections are rendered at most so many times a second for all who look together.
//  4. A fault of a page ends the part that has it; a fault of the member, in a call of a page, ends the process.
//  5. Nothing of a request, a key or a member is markup, a script, a style or a redirect to elsewhere.
//
// A Console may be used by many goroutines.
package console
