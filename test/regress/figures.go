package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

const figuresFile = "test/regress/figures.txt"

// figure is a count of one operation.
type figure struct {
	name      string
	count     float64
	tolerance float64 // by how much it may be worse, as a share; zero: it is only shown
	noted     bool    // a worse count is reported, and fails nothing
}

func contains(units []string, unit string) bool { return slices.Contains(units, unit) }

// number writes a count with at most four significant digits.
func number(count float64) string { return strconv.FormatFloat(round(count), 'f', -1, 64) }

func round(count float64) float64 {
	text := strconv.FormatFloat(count, 'g', 4, 64)
	rounded, err := strconv.ParseFloat(text, 64)
	if err != nil || count >= 1e4 {
		return float64(int64(count))
	}
	return rounded
}

// readFigures reads the committed counts.
func readFigures(path string) ([]figure, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the committed figures: %w; run it in the root of the repository", err)
	}
	return parseFigures(string(raw))
}

func parseFigures(text string) (all []figure, err error) {
	known := map[string]bool{}
	line := 0
	for row := range strings.Lines(text) {
		line++
		fields := strings.Fields(row)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 3 || known[fields[0]] {
			return nil, fmt.Errorf("%s:%d: %q is not a new name, a count and a tolerance", figuresFile, line, row)
		}
		f := figure{name: fields[0]}
		percent, isPercent := strings.CutSuffix(fields[2], "%")
		var countErr, percentErr error
		f.count, countErr = strconv.ParseFloat(fields[1], 64)
		f.tolerance, percentErr = strconv.ParseFloat(percent, 64)
		f.tolerance /= 100
		if err := errors.Join(countErr, percentErr); err != nil || !isPercent || f.tolerance <= 0 || f.count < 0 {
			return nil, fmt.Errorf("%s:%d: %q is not a name, a count and a tolerance in percent", figuresFile, line, row)
		}
		known[f.name] = true
		all = append(all, f)
	}
	return all, nil
}

// formatFigures returns the text of the file. Tolerances that were changed by hand stay.
func formatFigures(measured, committed []figure) string {
	var b strings.Builder
	b.WriteString("# What one operation costs: name, count, by how much it may be worse. " +
		"Written by `go run ./test/regress -update`.\n")
	for _, f := range measured {
		if f.tolerance == 0 {
			continue
		}
		if i := slices.IndexFunc(committed, func(c figure) bool { return c.name == f.name }); i >= 0 {
			f.tolerance = committed[i].tolerance
		}
		fmt.Fprintf(&b, "%-60s %10s %4s%%\n", f.name, number(f.count), strconv.FormatFloat(100*f.tolerance, 'f', -1, 64))
	}
	return b.String()
}

func writeFigures(path string, measured []figure) error {
	committed, err := readFigures(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(formatFigures(measured, committed)), 0o644)
}

// verdict is a count with the committed one.
type verdict struct {
	now, committed figure
	known          bool // it is committed
	gone           bool // it is committed, and was not counted
}

func (v *verdict) name() string {
	if v.gone {
		return v.committed.name
	}
	return v.now.name
}

// change is by how much the count is worse, as a share.
func (v *verdict) change() float64 {
	if v.committed.count == 0 {
		return v.now.count
	}
	return v.now.count/v.committed.count - 1
}

// fails reports whether the count fails the run: it is worse by more than its tolerance, or there is none to compare with.
func (v *verdict) fails() bool {
	return v.gone || v.now.tolerance > 0 && (!v.known || v.worse() && !v.now.noted)
}

func (v *verdict) worse() bool { return v.known && !v.gone && v.change() > v.committed.tolerance }

// anyWorse reports whether a worse count fails the run. Counting again does not help one that is new.
func anyWorse(verdicts []verdict) bool {
	return slices.ContainsFunc(verdicts, func(v verdict) bool { return v.worse() && v.fails() })
}

func (v *verdict) better() bool { return v.known && !v.gone && v.change() < -v.committed.tolerance }

func (v *verdict) remark() string {
	switch {
	case v.gone:
		return "NOT COUNTED"
	case v.now.tolerance == 0:
		return "shown only"
	case !v.known:
		return "NOT COMMITTED"
	case v.worse() && v.now.noted:
		return "more"
	case v.worse():
		return "WORSE"
	case v.better():
		return "better"
	}
	return ""
}

// compare compares counts with the committed ones. With all, those that were not counted are missing.
func compare(committed, measured []figure, all bool) (verdicts []verdict) {
	counted := map[string]bool{}
	for _, f := range measured {
		v := verdict{now: f}
		if i := slices.IndexFunc(committed, func(c figure) bool { return c.name == f.name }); i >= 0 && f.tolerance > 0 {
			v.committed, v.known = committed[i], true
		}
		counted[f.name] = true
		verdicts = append(verdicts, v)
	}
	for _, f := range committed {
		if all && !counted[f.name] {
			verdicts = append(verdicts, verdict{committed: f, known: true, gone: true})
		}
	}
	return verdicts
}
