package fetch_test

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// Ensure that reading a segment holds its bytes once: a proof has memory for that.
func TestObject_memory(t *testing.T) {
	const size = 1 << 20
	content := bytes.Repeat([]byte("segment "), size/8)
	place := objectstest.NewPlace(1, time.Now)
	stored := backup.Stored{SegmentName: backup.SegmentName{First: 1, End: backup.Point{Index: 2}, Hash: backup.HashOf(content)}, Size: size}
	if err := place.Put(t.Context(), stored.String(), bytes.NewReader(content), size); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := fetch.Segment(t.Context(), place, &stored)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || !bytes.Equal(got, content) || took > size+size/4 {
		t.Errorf("%d bytes are allocated for %d: %v", took, size, err)
	}
	// Of other objects only the most is known that they may have.
	small := []byte("manifest")
	if err := place.Put(t.Context(), "base/a", bytes.NewReader(small), int64(len(small))); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&before)
	_, err = fetch.Object(t.Context(), place, "base/a", backup.HashOf(small), 64<<20)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > 256<<10 {
		t.Errorf("%d bytes are allocated for %d: %v", took, len(small), err)
	}
}
