package monitoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// series keeps what was scraped, in memory. Its clock is moved by hand.
type series struct {
	now     time.Time
	samples map[string]*line
	engine  *promql.Engine
	parser  parser.Parser
}

type line struct {
	labels labels.Labels
	points []point
}

func newSeries() *series {
	return &series{
		now: time.Unix(1_700_000_000, 0), samples: map[string]*line{}, parser: parser.NewParser(parser.Options{}),
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		}),
	}
}

func (s *series) add(value float64, names labels.Labels) {
	key := names.String()
	if s.samples[key] == nil {
		s.samples[key] = &line{labels: names}
	}
	s.samples[key].points = append(s.samples[key].points, point{s.now.UnixMilli(), value})
}

// addPage adds all of a page of metrics, with the labels that Prometheus would add.
func (s *series) addPage(t *testing.T, page []byte, job, instance string) {
	t.Helper()
	p, err := textparse.New(page, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var names labels.Labels
		p.Labels(&names)
		_, _, value := p.Series()
		s.add(value, labels.NewBuilder(names).Set("job", job).Set("instance", instance).Labels())
	}
}

// ask evaluates an expression now.
func (s *series) ask(t *testing.T, expression string) promql.Vector {
	t.Helper()
	query, err := s.engine.NewInstantQuery(t.Context(), s, nil, expression, s.now)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	if result.Err != nil {
		t.Fatalf("%s: %v", expression, result.Err)
	}
	switch v := result.Value.(type) {
	case promql.Vector:
		return slices.Clone(v)
	case promql.Scalar:
		return promql.Vector{{F: v.V}}
	}
	t.Fatalf("%s: a %T", expression, result.Value)
	return nil
}

// unknown returns the selectors of an expression that select nothing of what was ever scraped.
func (s *series) unknown(t *testing.T, expression string) []string {
	t.Helper()
	tree, err := s.parser.ParseExpr(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	missing := map[string]bool{}
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok && !s.has(v.LabelMatchers) {
			missing[v.String()] = true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(missing))
}

// measured returns what the alerts that compare something with a number measure: the left sides of their comparisons.
func (s *series) measured(t *testing.T, alerts []rule) []string {
	t.Helper()
	var left []string
	for _, r := range alerts {
		tree, err := s.parser.ParseExpr(r.expression)
		if err != nil {
			t.Fatalf("%s: %v", r.expression, err)
		}
		if b, ok := tree.(*parser.BinaryExpr); ok && b.Op.IsComparisonOperator() && !slices.Contains(appearing, b.LHS.String()) {
			if _, ok := b.RHS.(*parser.NumberLiteral); ok && s.unknown(t, b.LHS.String()) == nil {
				left = append(left, b.LHS.String())
			}
		}
	}
	return left
}

func (s *series) has(matchers []*labels.Matcher) bool {
	for _, l := range s.samples {
		if matches(l.labels, matchers) {
			return true
		}
	}
	return false
}

func matches(names labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(names.Get(m.Name)) {
			return false
		}
	}
	return true
}

// Querier implements storage.Queryable.
func (s *series) Querier(from, to int64) (storage.Querier, error) { return &querier{s, from, to}, nil }

type querier struct {
	series   *series
	from, to int64
}

// Select implements storage.Querier.
func (q *querier) Select(
	_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher,
) storage.SeriesSet {
	var found []storage.Series
	for _, key := range slices.Sorted(maps.Keys(q.series.samples)) {
		l := q.series.samples[key]
		if !matches(l.labels, matchers) {
			continue
		}
		var within []chunks.Sample
		for _, p := range l.points {
			if p.at >= q.from && p.at <= q.to {
				within = append(within, p)
			}
		}
		if len(within) > 0 {
			found = append(found, storage.NewListSeries(l.labels, within))
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &set{found: found, at: -1}
}

// LabelValues and LabelNames implement storage.Querier; queries do not ask for them.
func (q *querier) LabelValues(
	context.Context, string, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, fmt.Errorf("not asked for")
}

func (q *querier) LabelNames(
	context.Context, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, fmt.Errorf("not asked for")
}

func (q *querier) Close() error { return nil }

type set struct {
	found []storage.Series
	at    int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.found) }
func (s *set) At() storage.Series                { return s.found[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// point implements chunks.Sample.
type point struct {
	at    int64
	value float64
}

func (p point) ST() int64                     { return 0 }
func (p point) T() int64                      { return p.at }
func (p point) F() float64                    { return p.value }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }
