package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// suite is a benchmark whose counts are compared.
type suite struct {
	name       string // begins the names of its counts
	pkg, bench string
	times      int      // operations in a run
	counts     []string // units that are compared: they hardly depend on the machine and on its load
	loose      []string // units that are compared with looseTolerance: they depend on how many messages share a write
	noted      []string // units that are compared, and fail nothing: allocated bytes depend on how buffers grow
	shown      []string // units that are shown
}

// Tolerances of counts that -update writes. Another one may be written into the file by hand, and is kept.
const (
	tolerance      = 0.05
	looseTolerance = 0.60
	notedTolerance = 0.30
)

const runs = "3"

var suites = []suite{
	{name: "call", pkg: "./internal/rpc", bench: "^BenchmarkCall$", times: 500, counts: []string{"allocs/op"},
		loose: []string{"writes/op"}, noted: []string{"B/op"}, shown: []string{"cpu-us/op", "reads/op", "switches/op"}},
	{name: "road", pkg: "./internal/rpc", bench: "^BenchmarkRoad$/^(put|range)$/^clients64$/^conns64$", times: 6400,
		counts: []string{"allocs/op"}, loose: []string{"reads/op", "writes/op"}, shown: []string{"cpu-us/op", "switches/op"}},
	{name: "raft", pkg: "./internal/member/node", bench: "^BenchmarkPut$", times: 100,
		counts: []string{"allocs/op", "footprints/put"}, shown: []string{"cpu-us/put"}},
	{name: "wal", pkg: "./internal/storage/wal", bench: "^BenchmarkWAL_Append_memory$", times: 2000,
		counts: []string{"allocs/op"}, noted: []string{"B/op"}, shown: []string{"ns/op"}},
	{name: "apply", pkg: "./internal/kv/apply", bench: "^BenchmarkMachine_Apply$", times: 200, counts: []string{"allocs/op"},
		shown: []string{"ns/op"}},
	{name: "store", pkg: "./test/regress", bench: "^BenchmarkStore_put$", times: 20_000,
		counts: []string{"allocs/op", "rows-B/op", "flushed-B/op"},
		shown:  []string{"B/op", "ns/op"}}, // B/op includes one more memtable if a flush ends later
	{name: "hub", pkg: "./internal/kv/watch", bench: "^BenchmarkHub_Publish$", times: 640,
		counts: []string{"allocs/op"}, noted: []string{"B/op"}, shown: []string{"ns/op"}},
}

// attempts is how many times a suite with a worse count is run: a disturbance of a run adds to a count, and the cost of the
// code stays.
const attempts = 3

// measure runs the benchmark, again while a count is worse than committed, and takes the least of each.
func (s *suite) measure(committed []figure, run func() ([]figure, error)) (least []figure, err error) {
	for range attempts {
		found, err := run()
		if err != nil {
			return nil, err
		}
		if least = leastOf(least, found); !anyWorse(compare(committed, least, false)) {
			break
		}
		fmt.Fprintf(os.Stderr, "%s: a count is worse, which may be a disturbance\n", s.name)
	}
	return least, nil
}

// leastOf takes the least of counts that have one name.
func leastOf(all, more []figure) []figure {
	for _, f := range more {
		if i := slices.IndexFunc(all, func(other figure) bool { return other.name == f.name }); i >= 0 {
			all[i].count = min(all[i].count, f.count)
			continue
		}
		all = append(all, f)
	}
	return all
}

// run runs the benchmark once.
func (s *suite) run() ([]figure, error) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, s.pkg)
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", s.bench, "-benchtime", strconv.Itoa(s.times)+"x", "-count", runs,
		"-cpu", "2", "-benchmem", "-timeout", "5m", s.pkg)
	cmd.Env = append(os.Environ(), "GOGC=off", "GOMEMLIMIT=1GiB") // a limit for machines that have little
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", s.name, err, out.String())
	}
	found, err := s.parse(out.String())
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: no benchmark of %s matches %s", s.name, s.pkg, s.bench)
	}
	return found, err
}

// parse reads the output of go test for benchmarks, and takes the least of the runs of each.
func (s *suite) parse(out string) (all []figure, err error) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			f, ok := s.figureOf(fields[0], fields[i+1])
			if !ok {
				continue
			}
			if f.count, err = strconv.ParseFloat(fields[i], 64); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", s.name, line, err)
			}
			all = leastOf(all, []figure{f})
		}
	}
	return all, nil
}

// figureOf names the count of a unit of a benchmark; false if the suite does not have the unit.
func (s *suite) figureOf(bench, unit string) (f figure, ok bool) {
	_, sub, _ := strings.Cut(bench, "/")
	if dash := strings.LastIndexByte(sub, '-'); dash >= 0 {
		sub = sub[:dash] // the number of processors
	}
	f.name = s.name + "/" + strings.TrimPrefix(sub+"/", "/") + strings.ReplaceAll(unit, "/", ".")
	switch {
	case contains(s.counts, unit):
		f.tolerance = tolerance
	case contains(s.loose, unit):
		f.tolerance = looseTolerance
	case contains(s.noted, unit):
		f.tolerance, f.noted = notedTolerance, true
	case !contains(s.shown, unit):
		return f, false
	}
	return f, true
}
