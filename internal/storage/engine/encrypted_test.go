package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/atrest/atresttest"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// valueOf is what the tests below write under a number; some values are large, and lie apart from their keys.
func valueOf(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "PLANTED %d ", i), 1+i%40*10) }

// encryptedStore makes a store of 200 keys on an encrypted disk, and closes it.
func encryptedStore(t *testing.T, disk env.FS) env.FS {
	t.Helper()
	fs := atrest.NewFS(disk, atresttest.Ring())
	e, err := engine.Open(engine.Options{FS: fs, Dir: "/s"})
	if err != nil {
		t.Fatal(err)
	}
	b := e.NewBatch()
	for i := range 200 {
		b.Set(versioned(fmt.Appendf(nil, "PLANTED-%03d", i), 1), valueOf(i))
	}
	if err := errors.Join(b.Commit(), b.Close(), e.Flush(), e.Close()); err != nil {
		t.Fatal(err)
	}
	return fs
}

// readAll opens a store and reads all of it. It reports how many values are as they were written; the error is that of a store
// which refuses one.
func readAll(fs env.FS) (right, wrong int, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it ends the process: %v", r)
		}
	}()
	e, err := engine.Open(engine.Options{FS: fs, Dir: "/s", ReadOnly: true})
	if err != nil {
		return 0, 0, err
	}
	defer e.Close()
	for i := range 200 {
		value, found, err := e.Get(versioned(fmt.Appendf(nil, "PLANTED-%03d", i), 1))
		switch {
		case err != nil:
			return right, wrong, err
		case found && bytes.Equal(value, valueOf(i)):
			right++
		default:
			wrong++
		}
	}
	return right, wrong, nil
}

func raw(t *testing.T, disk env.FS, name string) []byte {
	t.Helper()
	file, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return content
}

// Ensure that no file of an encrypted store shows a key or a value, and that a flipped bit anywhere in a table or in a file of
// values is refused or harmless: no value is ever another one, or gone.
func TestOpen_encrypted_flips(t *testing.T) {
	disk := filestest.NewMem()
	fs := encryptedStore(t, disk)
	names, err := disk.List("/s")
	if err != nil {
		t.Fatal(err)
	}
	refused, kinds := 0, map[string]bool{}
	for _, name := range names {
		path := "/s/" + name
		content := raw(t, disk, path)
		if bytes.Contains(content, []byte("PLANTED")) {
			t.Errorf("%s shows what was planted", name)
		}
		kind := name[strings.LastIndex(name, ".")+1:]
		if kind != "sst" && kind != "blob" {
			continue
		}
		kinds[kind] = true
		for at := 0; at < len(content); at += 1 + len(content)/60 {
			damaged := bytes.Clone(content)
			damaged[at] ^= 1 << (at % 8)
			overwrite(t, disk, path, func([]byte) []byte { return damaged })
			right, wrong, err := readAll(fs)
			if err != nil {
				refused++
			}
			if wrong > 0 || err == nil && right != 200 {
				t.Errorf("a flip of byte %d of %s: %d values are right, %d are wrong, %v", at, name, right, wrong, err)
			}
		}
		overwrite(t, disk, path, func([]byte) []byte { return content })
	}
	if refused < 60 || len(kinds) != 2 {
		t.Errorf("only %d flips were refused, in files of kinds %v", refused, kinds)
	}
	if right, wrong, err := readAll(fs); right != 200 || wrong > 0 || err != nil {
		t.Errorf("the store as it was: %d, %d, %v", right, wrong, err)
	}
}
