// Command house measures how the tree is built: how many packages there are, how their state is shared, and how many ways there
// are to do one thing. The numbers are thermometers, not limits. Given two trees it prints both, to compare a commit with an
// older one:
//
//	go run ./test/house
//	go run ./test/house ../older .
package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// run measures some trees, or the one in which it runs.
func run(roots []string, out io.Writer) error {
	if len(roots) == 0 {
		roots = []string{"."}
	}
	var measured []figures
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "what\t")
	for _, root := range roots {
		f, err := measure(root)
		if err != nil {
			return err
		}
		measured = append(measured, f)
		fmt.Fprintf(table, "%s\t", root)
	}
	fmt.Fprintln(table)
	for i := range measured[0] {
		fmt.Fprintf(table, "%s\t", measured[0][i].what)
		for _, f := range measured {
			fmt.Fprintf(table, "%d\t", f[i].number)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
