package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/base/printable"
)

// HexID writes an id as tables show it.
func HexID(id uint64) string { return fmt.Sprintf("%x", id) }

// Number writes a number.
func Number(n uint64) string { return strconv.FormatUint(n, 10) }

// PrintJSON writes one value on one line.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Say writes a text of one or more lines, in which other processes may have had their say, for people to read.
func Say(w io.Writer, text string) { fmt.Fprintln(w, printable.Lines(text, mostCell)) }

// Table collects rows and prints them with aligned columns.
type Table struct{ rows [][]string }

// Add adds a row.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = printable.Text(cell, mostCell)
	}
	t.rows = append(t.rows, row)
}

// mostCell bounds a cell, in characters.
const mostCell = 4096

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Lines returns the rows as lines.
func (t *Table) Lines() []string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out []string
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		out = append(out, strings.TrimRight(line.String(), " "))
	}
	return out
}

// Print writes the rows.
func (t *Table) Print(w io.Writer) {
	for _, line := range t.Lines() {
		fmt.Fprintln(w, line)
	}
}
