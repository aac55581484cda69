package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// blocksOf are the fenced blocks of one section of a page of the documents, without the indentation of the list that they are
// in.
func blocksOf(docs, page, heading string) ([]string, error) {
	if docs == "" {
		return nil, fmt.Errorf("it needs -docs DIR")
	}
	text, err := os.ReadFile(filepath.Join(docs, page))
	if err != nil {
		return nil, err
	}
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		return nil, fmt.Errorf("%s has no %q", page, heading)
	}
	var all []string
	var block *strings.Builder
	indent := ""
	for line := range strings.Lines(section) {
		bare := strings.TrimLeft(line, " ")
		switch fence := strings.HasPrefix(bare, "```"); {
		case fence && block == nil:
			block, indent = &strings.Builder{}, line[:len(line)-len(bare)]
		case fence:
			all = append(all, block.String())
			block = nil
		case block != nil:
			block.WriteString(strings.TrimPrefix(line, indent))
		case strings.HasPrefix(line, "#"):
			return all, nil
		}
	}
	return all, nil
}
