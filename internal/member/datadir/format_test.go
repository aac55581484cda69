package datadir_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/durable"
)

// edit replaces the first bytes of a file, as a later build would write them or as damage would leave them.
func edit(t *testing.T, fs env.FS, path, from, to string) {
	t.Helper()
	file, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil || !strings.HasPrefix(string(content), from) {
		t.Fatalf("%s begins with %q, not %q: %v", path, content[:min(len(content), 20)], from, err)
	}
	out, err := fs.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = out.Write(append([]byte(to), content[len(from):]...))
	if err = errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

func seal(t *testing.T, fs env.FS, path, text string) {
	t.Helper()
	if err := durable.WriteSealed(fs, path, text); err != nil {
		t.Fatal(err)
	}
}

// Ensure that the directory of a later build is recognized before its files are taken for damaged ones.
func TestCheckFormat(t *testing.T) {
	const log = "data/wal/0000000000000001.wal"
	for _, row := range []struct {
		name string
		make func(t *testing.T, fs env.FS)
		want error
	}{
		{"a later log", func(t *testing.T, fs env.FS) {
			edit(t, fs, log, "QUORWAL\n\x01", "QUORWAL\n\x03") // 2 is a log whose records are sealed
		}, datadir.ErrNewerBuild},
		{"later boots", func(t *testing.T, fs env.FS) {
			seal(t, fs, "data/boots", "quorate boots 2\n")
		}, datadir.ErrNewerBuild},
		{"a later record of the store", func(t *testing.T, fs env.FS) {
			seal(t, fs, "data/stores/CURRENT", "quorate store 12\n")
		}, datadir.ErrNewerBuild},
		{"damaged boots", func(t *testing.T, fs env.FS) {
			edit(t, fs, "data/boots", "quorate boots 1", "quorate bootz 1")
		}, datadir.ErrDamaged},
	} {
		t.Run(row.name, func(t *testing.T) {
			options := datatest.Options()
			datatest.Close(t, datatest.Create(t, options, 1))
			row.make(t, options.FS)
			_, opened := datadir.Open(options)
			_, inspected := datadir.Inspect(options)
			for _, err := range []error{opened, inspected} {
				if !errors.Is(err, row.want) || datadir.Damaged(err) != (row.want == datadir.ErrDamaged) {
					t.Errorf("got %v, want %v", err, row.want)
				}
			}
		})
	}
}
