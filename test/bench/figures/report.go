package figures

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report writes the medians of each workload and server, with notes, and then the ratios of the other servers to the first.
func Report(out io.Writer, servers []string, all []Row) error {
	var workloads []string
	for i := range all {
		if !slices.Contains(workloads, all[i].Workload) {
			workloads = append(workloads, all[i].Workload)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	measured := measuredKinds(all)
	fmt.Fprint(table, "workload\tserver\t")
	for _, k := range measured {
		fmt.Fprintf(table, "%s\t", k)
	}
	fmt.Fprintln(table)
	for _, workload := range workloads {
		for _, s := range servers {
			fmt.Fprintf(table, "%s\t%s\t", workload, s)
			for _, k := range measured {
				var values []float64
				for i := range all {
					if all[i].Workload == workload && all[i].Server == s {
						values = append(values, all[i].Values[k])
					}
				}
				fmt.Fprintf(table, "%s\t", k.Show(Median(values)))
			}
			fmt.Fprintln(table, notesOf(all, workload, s))
		}
	}
	for _, other := range servers[1:] {
		fmt.Fprintf(table, "\n%s/%s\t\t", other, servers[0])
		both := slices.DeleteFunc(slices.Clone(measured), func(k Kind) bool { return !columns[k].compared })
		for _, k := range both {
			fmt.Fprintf(table, "%s\t", k)
		}
		fmt.Fprintln(table)
		for _, workload := range workloads {
			fmt.Fprintf(table, "%s\t\t", workload)
			for _, k := range both {
				fmt.Fprintf(table, "%s\t", showRatios(Ratios(all, workload, servers[0], other, k)))
			}
			fmt.Fprintln(table)
		}
	}
	return table.Flush()
}

// notesOf are the notes of all rounds, each once.
func notesOf(all []Row, workload, server string) string {
	var notes []string
	for i := range all {
		if f := &all[i]; f.Workload == workload && f.Server == server && f.Note != "" && !slices.Contains(notes, f.Note) {
			notes = append(notes, f.Note)
		}
	}
	if len(notes) == 0 {
		return ""
	}
	return "  " + strings.Join(notes, "; ")
}

// measuredKinds are the columns of which some row has a figure.
func measuredKinds(all []Row) (measured []Kind) {
	for k := range kinds {
		if slices.ContainsFunc(all, func(f Row) bool { return !math.IsNaN(f.Values[k]) }) {
			measured = append(measured, k)
		}
	}
	return measured
}

// showRatios gives the median, and each round's in brackets.
func showRatios(rs []float64) string {
	if len(rs) == 0 {
		return "-"
	}
	each := make([]string, len(rs))
	for i, r := range rs {
		each[i] = fmt.Sprintf("%.2f", r)
	}
	return fmt.Sprintf("%.2f (%s)", Median(rs), strings.Join(each, " "))
}
