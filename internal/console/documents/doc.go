// Package documents is the pages of the console that show the documents of this build: one page each, the list of all, and a
// search.
//
// A library renders Markdown. The page adds what a browser that is offline needs: links between documents lead to their pages,
// links to other files of the source become text, and headings have the anchors that links in the documents use.
//
// Invariants:
//  1. Nothing but the files of package docs is read, whatever the path of a request is.
//  2. HTML in a document is left out. The page has no text of a request but by its templates.
//
// All functions may be called concurrently.
package documents
