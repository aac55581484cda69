package cluster

import (
	"github.com/quorate/quorate/test/bench/figures"

	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// partNames are the metrics that tell where a server writes, and what they count.
var partNames = map[string]string{
	`quorate_wal_appended_bytes_total`:                           "log: given to it",
	`quorate_wal_witness_bytes_total`:                            "log: witness records of that",
	`quorate_wal_written_bytes_total{part="records"}`:            "log: records, as written",
	`quorate_wal_written_bytes_total{part="segments"}`:           "log: heads of segments",
	`quorate_wal_written_bytes_total{part="ahead"}`:              "log: zeros ahead",
	`quorate_wal_syncs_total`:                                    "log: syncs (number)",
	`quorate_store_written_bytes_total{part="flushed_rows"}`:     "store: flushed rows",
	`quorate_store_written_bytes_total{part="flushed_values"}`:   "store: flushed values",
	`quorate_store_written_bytes_total{part="compacted_rows"}`:   "store: LSM compactions, rows",
	`quorate_store_written_bytes_total{part="compacted_values"}`: "store: LSM compactions, values",
	`quorate_store_written_bytes_total{part="rewritten_values"}`: "store: rewritten values",
	`etcd_disk_wal_write_bytes_total`:                            "log: records, in etcd's words",
	`etcd_disk_wal_fsync_duration_seconds_count`:                 "syncs of the log (number)",
	`etcd_disk_backend_commit_duration_seconds_count`:            "commits of the backend (number)",
}

// counts are sums over all members.
type counts map[string]float64

// counted reads the metrics of all members. One that does not answer counts as nothing.
func (c *Cluster) counted(ctx context.Context) counts {
	sums := counts{}
	for _, m := range c.Members {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.ClientAddr+"/metrics", nil)
		if err != nil {
			continue
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			continue
		}
		sums.add(answer.Body)
		_ = answer.Body.Close()
	}
	return sums
}

func (s counts) add(text io.Reader) {
	for lines := bufio.NewScanner(text); lines.Scan(); {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || partNames[line[:at]] == "" {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			s[line[:at]] += value
		}
	}
}

func (s counts) since(before counts) counts {
	out := counts{}
	for name, value := range s {
		out[name] = value - before[name]
	}
	return out
}

// WrittenParts is what a server said of one load.
type WrittenParts struct {
	load   string
	done   float64 // puts, or other mutations
	counts counts
}

// PrintParts says where the bytes of a mutation went, as far as servers tell.
func PrintParts(out io.Writer, all []WrittenParts) error {
	fmt.Fprintf(out, "\nbytes a mutation, of all members, as their metrics tell (the device is written to in whole pages):\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, p := range all {
		fmt.Fprintf(table, "%s\t\n", p.load)
		for _, name := range slices.SortedFunc(maps.Keys(p.counts), func(a, b string) int {
			return strings.Compare(partNames[a], partNames[b])
		}) {
			fmt.Fprintf(table, "  %s\t%s\n", partNames[name], figures.Show(p.counts[name]/p.done))
		}
	}
	return table.Flush()
}
