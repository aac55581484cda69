package goals

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/quorate/quorate/test/bench/figures"
)

// goal is one row of the table.
type goal struct {
	what     string
	workload string // of the report
	kind     figures.Kind
	want     float64 // 0: nothing was promised
	sense    sense
}

// sense says what a goal means.
type sense int

const (
	ratioAbove sense = iota // ours divided by etcd's
	ratioBelow
	valueAbove // ours alone
	valueBelow
)

// Section is rows that one command measures.
type Section struct {
	Name  string
	goals []goal
}

// Sections are all of them, in the order of the table.
func Sections(values int) []Section {
	memory := 0.3
	if values >= 10_000_000 {
		memory = 0.1
	}
	return []Section{
		{"calls", calls()},
		{"lists", []goal{
			{"range of 1,000 keys, 16 clients: throughput", "range-1000 c=16", figures.PerSecond, 2, ratioAbove},
			{"... server CPU", "range-1000 c=16", figures.ServerMicros, 0, ratioBelow},
			{"... resident memory of the largest member", "range-1000 c=16", figures.ResidentMiB, 0.2, ratioBelow},
			{"RangeStream of 100,000 keys, 4 clients: throughput", "stream-100000 c=4", figures.PerSecond, 2, ratioAbove},
			{"... server CPU", "stream-100000 c=4", figures.ServerMicros, 0, ratioBelow},
			{"... resident memory of the largest member", "stream-100000 c=4", figures.ResidentMiB, 0.2, ratioBelow},
		}},
		{"watch", []goal{
			{"1 writer, 1,000 watchers: p99 of delivery", "watch w=1000 s=50", figures.P99Millis, 0.3, ratioBelow},
			{"... server CPU of an event", "watch w=1000 s=50", figures.ServerMicros, 0.3, ratioBelow},
		}},
		{"leases", []goal{
			{"lease grant, 64 clients: throughput", "lease-grant c=64", figures.PerSecond, 2, ratioAbove},
			{"keepalive, 64 clients: throughput", "keepalive c=64", figures.PerSecond, 5, ratioAbove},
			{"keepalive, 100 leases at once: throughput", "keepalive-100 c=64", figures.PerSecond, 5, ratioAbove},
			{"... server CPU of 100", "keepalive-100 c=64", figures.ServerMicros, 0, ratioBelow},
		}},
		{"native", native()},
		{"memory", []goal{
			{"resident memory of the largest member, " + keys(values), fmt.Sprintf("memory %d", values), figures.ResidentMiB,
				memory, ratioBelow},
			{"... after a restart", fmt.Sprintf("memory %d, restarted", values), figures.ResidentMiB, 0, ratioBelow},
			{"... restart of all members, ms", fmt.Sprintf("memory %d, restarted", values), figures.WaitMillis, 0, ratioBelow},
		}},
		{"life", life()},
		{"k8s", kubernetes()},
		{"sites", sites()},
		{"regions", regions()},
	}
}

func keys(n int) string {
	if n%1_000_000 == 0 {
		return fmt.Sprintf("%d million keys", n/1_000_000)
	}
	return fmt.Sprintf("%d keys", n)
}

func calls() (all []goal) {
	for _, workload := range []struct{ name, key string }{{"put", "put"}, {"compare-and-set", "txn"}} {
		for _, clients := range []int{64, 256} {
			key := fmt.Sprintf("%s c=%d", workload.key, clients)
			all = append(all,
				goal{fmt.Sprintf("%s, %d clients: throughput", workload.name, clients), key, figures.PerSecond, 1.8,
					ratioAbove},
				goal{"... server CPU", key, figures.ServerMicros, 0.45, ratioBelow},
				goal{"... p99", key, figures.P99Millis, 0.7, ratioBelow})
		}
	}
	all = append(all, goal{"put, 1 client: p50", "put c=1", figures.MedianMillis, 0.75, ratioBelow})
	for _, clients := range []int{64, 256} {
		key := fmt.Sprintf("range c=%d", clients)
		all = append(all,
			goal{fmt.Sprintf("linearizable range, %d clients: throughput", clients), key, figures.PerSecond, 1.7, ratioAbove},
			goal{"... server CPU", key, figures.ServerMicros, 0.5, ratioBelow})
	}
	return all
}

// native compares puts of our own client with those of etcd's, so many under way at once in so many clients. Five is the goal
// for throughput, and so a fifth for the servers' CPU.
func native() (all []goal) {
	for _, row := range []struct{ under, clients int }{{64, 1}, {256, 4}} {
		key := fmt.Sprintf("put n=%d of %d", row.under, row.clients)
		all = append(all,
			goal{fmt.Sprintf("put by the native client, %d at once, clients %d: throughput", row.under, row.clients), key,
				figures.PerSecond, 5, ratioAbove},
			goal{"... server CPU", key, figures.ServerMicros, 0.2, ratioBelow})
	}
	return all
}

func life() (all []goal) {
	for _, size := range []string{"256 B", "10240 B"} {
		all = append(all,
			goal{size + ", history compacted: slowest second beside the median one", size, figures.LowestSecond, 0.9,
				valueAbove},
			goal{"... server CPU from the call to the last deletion", size, figures.ServerMicros, 1, ratioBelow},
			goal{"... bytes to the device", size, figures.DeviceBytes, 1, ratioBelow})
	}
	return all
}

func kubernetes() []goal {
	return []goal{
		{"k8s: highest rate with p99 below 100 ms", "highest rate", figures.PerSecond, 2.5, ratioAbove},
		{"... watches cancelled", "highest rate", figures.Cancelled, 0, valueBelow},
		{"k8s at one rate: p99 of mutations", "mutations", figures.P99Millis, 0, ratioBelow},
		{"... server CPU", "mutations", figures.ServerMicros, 0.5, ratioBelow},
		{"... watch lag, p99", "watch lag", figures.P99Millis, 0.5, ratioBelow},
		{"... bytes to the device", "mutations", figures.DeviceMiB, 0.6, ratioBelow},
		{"... paged list, p50", "paged list", figures.MedianMillis, 0.5, ratioBelow},
		{"... streamed list, p50", "streamed list", figures.MedianMillis, 0, ratioBelow},
		{"... resident memory of the largest member", "mutations", figures.ResidentMiB, 0, ratioBelow},
	}
}

// sites has the ratios of three sites that were reached before, which are not to be exceeded, and what five have.
func sites() []goal {
	return []goal{
		{"three sites, 1 client: put through a follower, p50", "3 sites, 1: put, follower", figures.MedianMillis,
			0.50 + noise, ratioBelow},
		{"... linearizable range", "3 sites, 1: get, follower", figures.MedianMillis, 0.50 + noise, ratioBelow},
		{"three sites, 64 clients: put through a follower, p50", "3 sites, 64: put, follower", figures.MedianMillis,
			0.34 + noise, ratioBelow},
		{"... linearizable range", "3 sites, 64: get, follower", figures.MedianMillis, 0.25 + noise, ratioBelow},
		{"five sites, 1 client: put through a follower, p50", "5 sites, 1: put, follower", figures.MedianMillis,
			0.52 + noise, ratioBelow},
		{"... linearizable range", "5 sites, 1: get, follower", figures.MedianMillis, 0.52 + noise, ratioBelow},
	}
}

// noise is what a ratio of two latencies between sites may be above what was reached before.
const noise = 0.03

// regions has the ratios that were reached before in five regions, which are not to be exceeded.
func regions() (all []goal) {
	for _, row := range []struct {
		site     string
		clients  int
		put, get float64
	}{
		{"us-east", 1, 0.61, 0.36}, {"us-east", 64, 0.41, 0.19}, {"us-west", 1, 0.50, 0.40}, {"us-west", 64, 0.35, 0.20},
		{"eu", 1, 1, 1}, {"eu", 64, 0.49, 0.50}, {"ap", 1, 0.63, 0.46}, {"ap", 64, 0.46, 0.23},
		{"sa", 1, 0.60, 0.58}, {"sa", 64, 0.36, 0.29},
	} {
		all = append(all,
			goal{fmt.Sprintf("five regions, client in %s, %d: put, p50", row.site, row.clients),
				fmt.Sprintf("regions, %d: put, %s", row.clients, row.site), figures.MedianMillis, row.put + noise, ratioBelow},
			goal{"... linearizable range", fmt.Sprintf("regions, %d: get, %s", row.clients, row.site), figures.MedianMillis,
				row.get + noise, ratioBelow})
	}
	return all
}

// Measured is what there is of one section.
type Measured struct {
	Name    string
	Command string
	Rounds  int
	Rows    []figures.Row
}

// Print writes the table in Markdown, and below it how each part was measured. Ratios are those of the server ours to base.
func Print(out io.Writer, base, ours string, values int, all []Measured) {
	fmt.Fprintf(out, "| row | %s | %s | ratio | goal | |\n|---|---|---|---|---|---|\n", base, ours)
	for _, section := range Sections(values) {
		at := slices.IndexFunc(all, func(m Measured) bool { return m.Name == section.Name })
		if at < 0 {
			continue
		}
		for _, g := range section.goals {
			fmt.Fprintln(out, g.line(base, ours, all[at].Rows))
		}
	}
	fmt.Fprintf(out, "\n| rows | rounds | others took | command |\n|---|---|---|---|\n")
	for _, m := range all {
		fmt.Fprintf(out, "| %s | %d | %s | `%s` |\n", m.Name, m.Rounds, others(m.Rows), m.Command)
	}
}

// others is what other processes took of the machine, from the calmest row to the one that was disturbed most.
func others(rows []figures.Row) string {
	least, most := math.Inf(1), math.Inf(-1)
	for i := range rows {
		if v := rows[i].Values[figures.OthersPercent]; !math.IsNaN(v) {
			least, most = min(least, v), max(most, v)
		}
	}
	if least > most {
		return "not known"
	}
	return fmt.Sprintf("%.0f to %.0f %%", least, most)
}

func (g goal) line(base, ours string, rows []figures.Row) string {
	value := func(server string) float64 {
		var all []float64
		for i := range rows {
			if rows[i].Workload == g.workload && rows[i].Server == server {
				all = append(all, rows[i].Values[g.kind])
			}
		}
		return figures.Median(all)
	}
	ratios := figures.Ratios(rows, g.workload, base, ours, g.kind)
	text, got := "", math.NaN()
	if len(ratios) > 0 {
		got = figures.Median(ratios)
		text = fmt.Sprintf("%.2f", got)
		if len(ratios) > 1 {
			text += fmt.Sprintf(" (%.2f to %.2f)", slices.Min(ratios), slices.Max(ratios))
		}
	}
	if g.sense == valueAbove || g.sense == valueBelow {
		got = value(ours)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", g.what, figures.Show(value(base)), figures.Show(value(ours)), text,
		g.promise(), g.verdict(got))
}

func (g goal) promise() string {
	switch {
	case g.sense == valueBelow:
		return fmt.Sprintf("at most %g", g.want)
	case g.want == 0:
		return ""
	case g.sense == valueAbove:
		return fmt.Sprintf("%g at least", g.want)
	default:
		return fmt.Sprintf("%.3g", g.want)
	}
}

func (g goal) verdict(got float64) string {
	above := g.sense == ratioAbove || g.sense == valueAbove
	switch {
	case math.IsNaN(got):
		return "not measured"
	case g.want == 0 && g.sense != valueBelow:
		return ""
	case above && got >= g.want || !above && got <= g.want:
		return "met"
	default:
		return "**missed**"
	}
}
