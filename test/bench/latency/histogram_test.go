package latency

import (
	"testing"
	"time"
)

// Every duration lies below its bucket's upper edge, by at most 1/64, and edges are in their own buckets.
func TestHistogram_buckets(t *testing.T) {
	for d := time.Duration(0); d < 10*time.Minute; d += d/50 + 1 {
		edge := upperEdge(bucketOf(d))
		if edge < d || edge > d+d/64+1 {
			t.Fatalf("%d ns: edge %d ns", d, edge)
		}
		if bucketOf(edge) != bucketOf(d) || bucketOf(edge+1) != bucketOf(d)+1 {
			t.Fatalf("%d ns: edge %d ns is not the last of its bucket", d, edge)
		}
	}
	if got := bucketOf(1 << 62); got != powers*parts-1 {
		t.Errorf("too long a duration: got bucket %d, want the last", got)
	}
}

func TestHistogram_quantile(t *testing.T) {
	var left, right Histogram
	if got := left.Quantile(0.5); got != 0 {
		t.Errorf("empty: got %v, want 0", got)
	}
	for i := 1; i <= 1000; i++ {
		h := &left
		if i%3 == 0 {
			h = &right
		}
		h.Record(time.Duration(i) * time.Millisecond)
	}
	left.Add(&right)
	if left.Count() != 1000 || left.Longest() != time.Second {
		t.Fatalf("got %d durations up to %v, want 1000 up to a second", left.Count(), left.Longest())
	}
	for _, row := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.5, 501}, {0.99, 991}, {1, 1000}} {
		want := row.want * time.Millisecond
		if got := left.Quantile(row.q); got < want || got > want+want/64+1 {
			t.Errorf("quantile %v: got %v, want %v", row.q, got, want)
		}
	}
}
