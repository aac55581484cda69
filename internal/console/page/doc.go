// Package page is what a page of the console is made of: sections that are loaded at once, each within the same bound of time,
// and actions that change something.
//
// A Page has templates and sections. A Section loads its data with calls to the API of the member, as the user who looks at it,
// and a template shows them. A section that fails or takes too long shows that, and the others are shown as they are. An Action
// exists only on a console that was started to administer.
//
// The main types are Page, Section, Action and Request.
//
// Invariants:
//  1. A section changes nothing: its connection passes only calls that read (package console, readOnly).
//  2. Text of members, users and keys reaches a page through templates of html/template; nothing of it is markup.
//
// Values are made once, before the console serves, and are read by many goroutines then.
package page
