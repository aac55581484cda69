package k8s

import (
	"bytes"
	"compress/flate"
	"testing"
	"time"
)

// Keys differ, values differ, and compress as they are said to.
func TestMaterial_object(t *testing.T) {
	for _, row := range []struct {
		name        string
		random      bool
		least, most float64
	}{{"random", true, 0.99, 1.01}, {"compressible", false, 3, 4.5}} {
		m := newMaterial(row.random)
		var packed bytes.Buffer
		w, err := flate.NewWriter(&packed, flate.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		seen, size := map[uint32]bool{}, 0
		for number := range 200 {
			for range 3 {
				value := m.object(number, 10<<10)
				if seen[sum(value)] {
					t.Fatalf("%s: a value comes twice", row.name)
				}
				seen[sum(value)] = true
			}
			value := m.object(number, 10<<10)
			size += len(value)
			if _, err := w.Write(value); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := float64(size) / float64(packed.Len()); got < row.least || got > row.most {
			t.Errorf("%s: packed to 1/%.2f, want 1/%.2f to 1/%.2f", row.name, got, row.least, row.most)
		}
	}
}

func TestResource_key(t *testing.T) {
	for r := range resources {
		seen := map[string]bool{}
		for number := range 20_000 {
			key := r.key(number)
			if seen[key] || key[:len(prefixes[r])] != prefixes[r] {
				t.Fatalf("%v %d: %q", r, number, key)
			}
			seen[key] = true
		}
	}
}

func TestStamp(t *testing.T) {
	value := newMaterial(true).object(1, leaseBytes)
	at := time.Unix(1_700_000_000, 123)
	stamp(value, at)
	if got := sent(value); !got.Equal(at) {
		t.Errorf("got %v, want %v", got, at)
	}
	if got := sent(nil); !got.IsZero() {
		t.Errorf("of no value: got %v", got)
	}
}
