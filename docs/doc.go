// Package docs is the documents of this build: the Markdown files beside it, and their pictures. A console shows them, so
// that the documents that people read are those of the program that they run.
package docs

import "embed"

// Files has the documents, by their paths below this directory.
//
//go:embed *.md adr/*.md history/*.md pictures/*.svg
var Files embed.FS
