// Package backups is the page of the console that shows the continuous backup: how far it is, who ships it, which restore was
// proven last, and by whom; and that starts, changes and stops it where the console was started to administer.
//
// Invariants:
//  1. A form leads to a page that says what happens, with the command that does the same; only that page changes something.
//  2. A page never has a credential: URLs of places have none, and one that has is refused without repeating it.
package backups
