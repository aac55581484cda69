package pictures

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const committed = "../../../docs/pictures"

// The pictures of the documentation are those of the figures beside them.
func TestDraw_committed(t *testing.T) {
	results := readCommitted(t)
	drawn := Draw(results)
	for _, name := range []string{"throughput.svg", "latency.svg", "cpu.svg"} {
		want, err := os.ReadFile(filepath.Join(committed, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(drawn[name], want) {
			t.Errorf("%s is not what `go run . pictures --from ../../docs/pictures/bench.json --out ../../docs/pictures` draws", name)
		}
	}
	var written bytes.Buffer
	if err := results.Write(&written); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(committed, "bench.json")); err != nil || !bytes.Equal(text, written.Bytes()) {
		t.Errorf("bench.json is not as Write writes it (%v)", err)
	}
	if got := Draw(&Results{}); len(got) != 0 {
		t.Errorf("of nothing: got %d pictures", len(got))
	}
}

// A picture says when, with what and how it was made, is a document of its own, and its figures are in it.
func TestDraw_says(t *testing.T) {
	r := &Results{
		Date: "1 May 2026", Command: "go run . pictures <flags>", Machine: "2 cores", Others: 12,
		Servers: []Server{{Name: "etcd & co", Version: "3.7.1",
			Curves: []Curve{{Workload: "put", Points: []Point{{1, 1234, 1000, 2000}, {64, 5000, 4000, 6000}}}},
			Seconds: &Timeline{Rate: 1000, Median: []float64{1, 0, 2}, P99: []float64{9, 0, 700}, Failed: 3,
				Marks: []Mark{{Compaction, 1, 1.5}, {Defragmentation, 2, 2.5}}},
			Parts: []Spent{{Workload: "put", Clients: 64, Parts: []Share{{"log and syncs", 12.5}, {"other", 30}}}},
		}},
	}
	drawn := Draw(r)
	for name, wants := range map[string][]string{
		"throughput.svg": {"1,234", "6,000", "clients"},
		"latency.svg":    {"3 failed", "of the slowest 700 ms", `class="k"`, `class="o"`, "seconds"},
		"cpu.svg":        {"log and syncs", "in all etcd &amp; co 42 us", "us for one operation"},
	} {
		text := string(drawn[name])
		for _, want := range append(wants, "1 May 2026", "3.7.1", "12 %", "go run . pictures &lt;flags&gt;", "prefers-color-scheme") {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
		for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "url(") {
			t.Errorf("%s has a coordinate that is no number, or refers to another file", name)
		}
	}
}

func TestSteps(t *testing.T) {
	for _, most := range []float64{0.03, 1, 7, 12, 99, 101, 4321, 68000} {
		got := steps(most)
		if last := got[len(got)-1]; last < most || got[len(got)-2] >= most || len(got) < 4 || len(got) > 9 {
			t.Errorf("up to %v: got %v", most, got)
		}
	}
	if got := decades(3, 450); !slices.Equal(got, []float64{2, 5, 10, 20, 50, 100, 200, 500}) {
		t.Errorf("from 3 to 450: got %v", got)
	}
}

func TestRead_refuses(t *testing.T) {
	for _, text := range []string{"", "{", `{"unknown":1}`} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func readCommitted(t *testing.T) *Results {
	t.Helper()
	file, err := os.Open(filepath.Join(committed, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	results, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return results
}
