package screen

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Screen is a terminal.
type Screen struct {
	Out   io.Writer
	Width func() int // columns, 0 if unknown; may be nil
	drawn []string   // the block that is on the terminal now
}

const (
	lineUp     = "\x1b[%dA"
	eraseBelow = "\x1b[J"
	eraseRight = "\x1b[K"
)

// Columns returns the width of the terminal, 0 if it is unknown.
func (s *Screen) Columns() int {
	if s.Width == nil {
		return 0
	}
	return s.Width()
}

// Say prints a line that stays, above the block.
func (s *Screen) Say(format string, args ...any) {
	block := s.drawn
	s.Erase()
	fmt.Fprintf(s.Out, format+"\n", args...)
	s.Draw(block)
}

// Erase removes the block.
func (s *Screen) Erase() {
	if len(s.drawn) > 0 {
		fmt.Fprintf(s.Out, lineUp+eraseBelow, len(s.drawn))
	}
	s.drawn = nil
}

// Draw puts a block in the place of the last one.
func (s *Screen) Draw(lines []string) {
	if len(lines) == 0 {
		return
	}
	var frame strings.Builder
	if len(s.drawn) > 0 {
		fmt.Fprintf(&frame, lineUp, len(s.drawn))
	}
	columns := s.Columns()
	for _, line := range lines {
		frame.WriteString(cut(line, columns) + eraseRight + "\n")
	}
	frame.WriteString(eraseBelow)
	io.WriteString(s.Out, frame.String())
	s.drawn = lines
}

func cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width])
}
