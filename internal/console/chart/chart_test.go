package chart_test

import (
	"encoding/xml"
	"flag"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/console/chart"
)

var rewrite = flag.Bool("rewrite", false, "write the golden figures instead of comparing with them")

func perSecond(v float64) string { return fmt.Sprintf("%g/s", v) }

var three = []chart.Series{
	{Name: "m1", Values: []float64{10, 20, 15, 40}},
	{Name: "m2", Values: []float64{math.NaN(), 5, math.NaN(), 41}},
	{Name: "m3 with a name that is long", Values: []float64{0, 0, 0, 39}},
}

// Ensure that figures stay as they are: each is a pure function of its numbers.
func TestGolden(t *testing.T) {
	options := chart.Options{Title: "Writes a second", Unit: perSecond, Past: "40 s ago", Half: "20 s ago", Least: 1}
	for name, figure := range map[string]template.HTML{
		"lines": chart.Lines(options, three...),
		"line":  chart.Lines(options, three[0]),
		"none":  chart.Lines(options),
		"bar": chart.Bar("Memory", chart.Part{Name: "cache", Value: 3, Label: "3 MiB"}, chart.Part{Name: "log", Value: 1, Label: "1 MiB"},
			chart.Part{Name: "free", Value: 4, Label: "4 MiB", Quiet: true}),
		"bars": chart.Bars("Time of a write",
			chart.Row{Name: "m1", Label: "3 ms", Parts: []chart.Part{{Name: "sync", Value: 2, Label: "2 ms"}, {Name: "apply", Value: 1, Label: "1 ms"}}},
			chart.Row{Name: "m2", Label: "6 ms", Parts: []chart.Part{{Name: "sync", Value: 0, Label: "0"}, {Name: "apply", Value: 6, Label: "6 ms"}}}),
	} {
		path := filepath.Join("testdata", name+".html")
		got := strings.ReplaceAll(string(figure), "><", ">\n<") + "\n"
		if *rewrite {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v; got\n%s\nTo accept it: go test ./internal/console/chart -rewrite", name, err, got)
		}
	}
}

// wellFormed fails the test for markup that does not nest, or that the policy of the console forbids.
func wellFormed(t *testing.T, figure template.HTML) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader("<div>" + string(figure) + "</div>"))
	d.Strict = true
	for {
		token, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%v in %.4000s", err, figure)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if element.Name.Local == "script" || element.Name.Local == "style" {
			t.Errorf("an element %s", element.Name.Local)
		}
		for _, a := range element.Attr {
			if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("an attribute %s of %s", a.Name.Local, element.Name.Local)
			}
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
				t.Errorf("%s=%q of %s", a.Name.Local, a.Value, element.Name.Local)
			}
		}
	}
}

// Ensure that whatever numbers and names there are, a figure is sound markup, all of it drawn within its frame.
func TestHostile(t *testing.T) {
	name := `</text><script>alert(1)</script>"'&` + strings.Repeat("x", 5000)
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -5, 0, math.MaxFloat64, math.SmallestNonzeroFloat64}
	var many []chart.Series
	for i := range 50 {
		many = append(many, chart.Series{Name: name, Values: append(odd[i%len(odd):], 1)})
	}
	options := chart.Options{Title: name, Unit: perSecond, Past: name, Half: name}
	for _, series := range [][]chart.Series{nil, {{Name: name}}, {{Name: name, Values: odd}}, many, {{Values: []float64{7}}}} {
		figure := chart.Lines(options, series...)
		wellFormed(t, figure)
		if strings.Contains(string(figure), "<script") {
			t.Error("a name is markup")
		}
		for _, y := range regexp.MustCompile(`,(-?[0-9.]+)[ "]`).FindAllStringSubmatch(string(figure), -1) {
			if at, err := strconv.ParseFloat(y[1], 64); err != nil || at < 0 || at > 132 {
				t.Errorf("a point at %s", y[1])
			}
		}
	}
	var parts []chart.Part
	for _, v := range odd {
		parts = append(parts, chart.Part{Name: name, Value: v, Label: name})
	}
	parts = append(parts, parts...)
	wellFormed(t, chart.Bar(name, parts...))
	wellFormed(t, chart.Bars(name, chart.Row{Name: name, Parts: parts}, chart.Row{}))
	wellFormed(t, chart.Bars(name))
}

// Ensure that labels at the ends of lines stand in the order of the lines, none over another, all within the figure.
func TestLines_labels(t *testing.T) {
	for _, last := range [][]float64{{5, 5, 5, 5, 5, 5, 5}, {0, 0, 0, 0, 0, 0, 0}, {100, 99, 1, 2, 50, 51, 3}} {
		var series []chart.Series
		for i, v := range last {
			series = append(series, chart.Series{Name: fmt.Sprint("m", i), Values: []float64{0, v}})
		}
		figure := string(chart.Lines(chart.Options{Unit: perSecond}, series...))
		_, labels, _ := strings.Cut(figure, `class="ends"`)
		labels, _, _ = strings.Cut(labels, "</svg>")
		found := regexp.MustCompile(`<text x="27" y="([0-9.]+)">m(\d)`).FindAllStringSubmatch(labels, -1)
		if len(found) != len(last) {
			t.Fatalf("%d labels of %d lines", len(found), len(last))
		}
		before, value := -100.0, math.Inf(1)
		for _, label := range found {
			y, err := strconv.ParseFloat(label[1], 64)
			i, _ := strconv.Atoi(label[2])
			if err != nil || y < before+12.9 || y > 132 || last[i] > value {
				t.Errorf("ends %v: a label at %s, after one at %g", last, label[1], before)
			}
			before, value = y, last[i]
		}
	}
}

// Ensure that more series than have a colour are in the table, and that the figure says so.
func TestLines_many(t *testing.T) {
	var series []chart.Series
	for i := range 9 {
		series = append(series, chart.Series{Name: fmt.Sprint("m", i), Values: []float64{1, 2}})
	}
	figure := string(chart.Lines(chart.Options{Unit: perSecond}, series...))
	if !strings.Contains(figure, "2 more are in the table only") || strings.Count(figure, "<polyline") != 7 ||
		strings.Count(figure, `<th scope="row">`) != 9 {
		t.Errorf("got %s", figure)
	}
}

// Ensure that a scale ends at a number that is easy to read, above all values, and not above the most.
func TestLines_scale(t *testing.T) {
	for _, row := range []struct {
		value, least, most float64
		want               string
	}{{0, 0, 0, "1/s"}, {3, 0, 0, "5/s"}, {10, 0, 0, "10/s"}, {11, 0, 0, "20/s"}, {0.7, 1, 1, "1/s"}, {2, 100, 0, "100/s"}} {
		figure := string(chart.Lines(chart.Options{Unit: perSecond, Least: row.least, Most: row.most},
			chart.Series{Values: []float64{row.value, row.value}}))
		if _, labels, _ := strings.Cut(figure, `class="ys"`); !strings.Contains(labels, `y="12" text-anchor="end">`+row.want+"<") {
			t.Errorf("%+v: got %.600s", row, labels)
		}
	}
}
