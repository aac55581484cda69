package durable

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
)

// The text of a small file begins with a line that names its form and the number of it:
//
//	quorate peers 1

// Head returns the first line of a small file's text, with its end.
func Head(name string, number int) string { return fmt.Sprintf("quorate %s %d\n", name, number) }

// CutHead returns the text behind the line that Head returns. The error is level.ErrLater if the number of that line is a later
// one, and ErrCorrupt if the text begins otherwise.
func CutHead(text, name string, number int) (rest string, err error) {
	line, rest, ended := strings.Cut(text, "\n")
	digits, named := strings.CutPrefix(line, "quorate "+name+" ")
	found, err := strconv.ParseUint(digits, 10, 32)
	switch {
	case !named || !ended || err != nil || strconv.FormatUint(found, 10) != digits || found < uint64(number):
		return "", fmt.Errorf("it does not begin as %q: %w", strings.TrimSuffix(Head(name, number), "\n"), ErrCorrupt)
	case found > uint64(number):
		return "", fmt.Errorf("%q is of version %d, this build reads %d: %w", name, found, number, level.ErrLater)
	}
	return rest, nil
}

// CheckHead returns level.ErrLater if the file has a later number of its form. Nothing else is an error: the code that reads
// the file reports the rest.
func CheckHead(fs env.FS, path, name string, number int) error {
	text, err := ReadSealed(fs, path)
	if err != nil {
		return nil
	}
	if _, err = CutHead(text, name, number); errors.Is(err, level.ErrLater) {
		return err
	}
	return nil
}
