package frozen

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Value is an encoded value and its name, which is one line.
type Value struct {
	Name  string
	Bytes []byte
}

// Advice is the end of every sentence about a value that changed.
const Advice = "members of the build before it, and its data directories, have the former bytes. Change the code back; or, " +
	"if the " +
	"form is to change, raise the level: give the new form a number of its own that is written from a higher feature level " +
	"on, and " +
	"keep the reader of this one (docs/formats.md, \"How a form may change\")"

// Check compares the values with the table at path. If rewrite is set, values that the table lacks are appended to it.
func Check(t testing.TB, path string, rewrite bool, values []Value) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !(rewrite && errors.Is(err, fs.ErrNotExist)) {
		t.Fatal(err)
	}
	kept, err := Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	faults, added := Compare(kept, values)
	for _, fault := range faults {
		t.Errorf("%s: %s", path, fault)
	}
	if len(added) == 0 {
		return
	}
	if !rewrite {
		t.Errorf("%s lacks %q and %d more: values of a new kind need a feature level, too, unless they are of one that no "+
			"release "+
			"has (docs/formats.md); then run the test with -rewrite", path, added[0].Name, len(added)-1)
		return
	}
	if err := os.WriteFile(path, append(text, Print(added)...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Compare returns what is wrong with values by the table, a sentence each, and those that the table lacks.
func Compare(table, values []Value) (faults []string, added []Value) {
	now := map[string][]byte{}
	for _, v := range values {
		if _, twice := now[v.Name]; twice {
			faults = append(faults, fmt.Sprintf("two values have the name %q: give one another", v.Name))
		}
		now[v.Name] = v.Bytes
	}
	known := map[string]bool{}
	for _, v := range table {
		known[v.Name] = true
		encoded, there := now[v.Name]
		switch {
		case !there:
			faults = append(faults, fmt.Sprintf("%q is no longer encoded: %s", v.Name, Advice))
		case !bytes.Equal(encoded, v.Bytes):
			faults = append(faults, fmt.Sprintf("%q is encoded otherwise: %s\nin the table:\n%snow:\n%s", v.Name, Advice,
				rows(v.Bytes), rows(encoded)))
		}
	}
	for _, v := range values {
		if !known[v.Name] {
			added = append(added, v)
		}
	}
	return faults, added
}

// Print returns values as Parse reads them.
func Print(values []Value) string {
	var text strings.Builder
	for _, v := range values {
		text.WriteString(v.Name + "\n" + rows(v.Bytes))
	}
	return text.String()
}

const (
	indent   = "    "
	rowBytes = 40
)

// rows are the indented lines of a value: quoted if all of it is text, else in hexadecimal.
func rows(value []byte) string {
	var text strings.Builder
	if isText(value) {
		for line := range strings.Lines(string(value)) {
			text.WriteString(indent + strconv.Quote(line) + "\n")
		}
		return text.String()
	}
	for len(value) > 0 {
		n := min(len(value), rowBytes)
		text.WriteString(indent + hex.EncodeToString(value[:n]) + "\n")
		value = value[n:]
	}
	return text.String()
}

// isText reports whether a value is read better as text: some letters, and nothing that does not print.
func isText(value []byte) bool {
	for _, b := range value {
		if b != '\n' && (b < ' ' || b > '~') {
			return false
		}
	}
	return len(value) >= 8
}

// Parse reads what Print wrote.
func Parse(text string) (values []Value, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		row, indented := strings.CutPrefix(line, indent)
		if !indented {
			values = append(values, Value{Name: line})
			continue
		}
		if len(values) == 0 {
			return nil, fmt.Errorf("bytes without a name: %q", line)
		}
		last := &values[len(values)-1]
		var part []byte
		if strings.HasPrefix(row, `"`) {
			var quoted string
			quoted, err = strconv.Unquote(row)
			part = []byte(quoted)
		} else {
			part, err = hex.DecodeString(row)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		last.Bytes = append(last.Bytes, part...)
	}
	return values, nil
}
