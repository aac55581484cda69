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
	if err := place.Put(t.Context(), "log/a", bytes.NewReader(content), size); err != nil {
		t.Fatal(err)
	}
	hash := backup.HashOf(content)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := fetch.Object(t.Context(), place, "log/a", hash, size)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || !bytes.Equal(got, content) || took > size+size/4 {
		t.Errorf("%d bytes are allocated for %d: %v", took, size, err)
	}
}
