package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	update := flag.Bool("update", false, "write the counts of this tree into "+figuresFile)
	only := flag.String("only", "", "a regular expression: run only suites whose name it matches, as in -only 'call|wal'")
	flag.Parse()
	if err := run(*update, *only); err != nil {
		fmt.Fprintln(os.Stderr, "regress:", err)
		os.Exit(1)
	}
}

func run(update bool, only string) error {
	wanted, err := regexp.Compile(only)
	switch {
	case err != nil:
		return fmt.Errorf("-only: %w", err)
	case update && only != "":
		return fmt.Errorf("-update writes all counts: leave -only out")
	}
	committed, err := readFigures(figuresFile)
	if err != nil && !update {
		return err
	}
	begun := time.Now()
	var measured []figure
	for i := range suites {
		if !wanted.MatchString(suites[i].name) {
			continue
		}
		found, err := suites[i].measure(committed, suites[i].run)
		if err != nil {
			return err
		}
		measured = append(measured, found...)
	}
	if len(measured) == 0 {
		return fmt.Errorf("-only %s matches no suite", only)
	}
	verdicts := compare(committed, measured, only == "")
	print(verdicts)
	fmt.Printf("took %v\n", time.Since(begun).Round(time.Second))
	if update {
		return writeFigures(figuresFile, measured)
	}
	return summarize(verdicts)
}

func print(verdicts []verdict) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "count of one operation\tcommitted\tnow\tchange\t")
	for i := range verdicts {
		v := &verdicts[i]
		before, change := "-", ""
		if v.known {
			before, change = number(v.committed.count), fmt.Sprintf("%+.1f %%", 100*v.change())
		}
		now := number(v.now.count)
		if v.gone {
			now, change = "-", ""
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", v.name(), before, now, change, v.remark())
	}
	_ = table.Flush()
}

// summarize returns the error that fails the run, and asks for new figures if some are better.
func summarize(verdicts []verdict) error {
	var bad, more, better []string
	for i := range verdicts {
		switch v := &verdicts[i]; {
		case v.fails():
			bad = append(bad, v.name())
		case v.worse():
			more = append(more, v.name())
		case v.better():
			better = append(better, v.name())
		}
	}
	const how = "go run ./test/regress -update"
	if len(more) > 0 {
		fmt.Printf("more than committed, which fails nothing: %s\n", strings.Join(more, ", "))
	}
	if len(better) > 0 {
		fmt.Printf("better than committed: %s; write that down with `%s`, and commit it\n", strings.Join(better, ", "), how)
	}
	if len(bad) > 0 {
		return fmt.Errorf("worse than committed, or not counted: %s; mend it, or, if it is worth that, say why in the commit "+
			"that brings the figures of `%s`", strings.Join(bad, ", "), how)
	}
	return nil
}
