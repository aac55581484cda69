package atrest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/atrest/atresttest"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func content(fs env.FS, name string) []byte {
	file := must(fs.Open(name))
	defer file.Close()
	return must(io.ReadAll(file))
}

func write(t *testing.T, fs env.FS, name string, pieces ...[]byte) {
	t.Helper()
	file, err := fs.Create(name)
	for _, piece := range pieces {
		if err == nil {
			_, err = file.Write(bytes.Clone(piece))
		}
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a file reads as it was written, from any place and in any pieces, and that its size is that of the content.
func TestFS_model(t *testing.T) {
	below := filestest.NewMem()
	fs, rng := atrest.NewFS(below, atresttest.Ring()), rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var want []byte
		var pieces [][]byte
		for range rng.IntN(6) {
			piece := make([]byte, rng.IntN(100))
			for i := range piece {
				piece[i] = byte(rng.Uint32())
			}
			pieces, want = append(pieces, piece), append(want, piece...)
		}
		write(t, fs, "file", pieces...)
		if got := content(fs, "file"); !bytes.Equal(got, want) {
			t.Fatalf("got %x, want %x", got, want)
		}
		file, info := must(fs.OpenSequential("file")), must(fs.Stat("file"))
		if opened := must(file.Stat()); info.Size() != int64(len(want)) || opened.Size() != info.Size() {
			t.Fatalf("sizes %d and %d, want %d", info.Size(), opened.Size(), len(want))
		}
		for range 20 {
			buf, at := make([]byte, rng.IntN(50)+1), rng.IntN(len(want)+20)
			n, err := file.ReadAt(buf, int64(at))
			rest := want[min(at, len(want)):]
			if !bytes.Equal(buf[:n], rest[:min(len(rest), len(buf))]) || (err != nil) != (n < len(buf)) || err != nil && err != io.EOF {
				t.Fatalf("%d bytes at %d of %d: %x, %v", len(buf), at, len(want), buf[:n], err)
			}
		}
		if _, err := file.ReadAt(make([]byte, 1), -1); err == nil {
			t.Fatal("read before the beginning")
		}
	}
}

// Ensure that nothing of a file is in the file below, that the same content is encrypted otherwise in each file, and that links
// and names lead to the same content.
func TestFS_showsNothing(t *testing.T) {
	below := filestest.NewMem()
	ring := atresttest.Ring()
	fs := atrest.NewFS(below, ring)
	secret := bytes.Repeat([]byte("a planted value "), 100)
	seen := map[string]bool{}
	for i := range 20 {
		if i == 10 {
			must(ring.Rotate(t.Context(), nil, ring.Active().Created))
		}
		name := fmt.Sprint("file", i)
		write(t, fs, name, secret[:700], secret[700:])
		raw := content(below, name)
		if bytes.Contains(raw, []byte("planted")) || len(raw) != len(secret)+64 {
			t.Fatalf("the file below: %q", raw)
		}
		for at := 64; at+16 <= len(raw); at += 16 {
			if block := string(raw[at : at+16]); seen[block] {
				t.Fatalf("file %d has a block that was there before", i)
			} else {
				seen[block] = true
			}
		}
	}
	if err := errors.Join(fs.Link("file3", "link"), fs.Rename("file4", "moved")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "moved", "file15"} {
		if !bytes.Equal(content(fs, name), secret) {
			t.Errorf("%s has other content", name)
		}
	}
}

// Ensure that no place of a file is ever written twice: the two contents would have one key stream.
func TestFS_refusesToWriteInPlace(t *testing.T) {
	below := filestest.NewMem()
	fs := atrest.NewFS(below, atresttest.Ring())
	write(t, fs, "file", []byte("content"))
	before := content(below, "file")
	if _, err := fs.OpenReadWrite("file"); err == nil {
		t.Error("opened for writing in place")
	}
	if _, err := must(fs.Create("other")).WriteAt([]byte("x"), 0); err == nil {
		t.Error("wrote in place")
	}
	if !bytes.Equal(content(below, "file"), before) {
		t.Error("the file was changed")
	}
}

// Ensure that a write which failed is the last one of its file: a repeated one would meet a key stream that is ahead.
func TestFile_Write_afterFailure(t *testing.T) {
	cause, fail := errors.New("no"), false
	below := filestest.Wrap(filestest.NewMem(), filestest.InjectorFunc(func(op filestest.Op) error {
		if fail && op.Kind == filestest.OpFileWrite {
			return cause
		}
		return nil
	}))
	file := must(atrest.NewFS(below, atresttest.Ring()).Create("file"))
	fail = true
	if _, err := file.Write([]byte("one")); !errors.Is(err, cause) {
		t.Fatal(err)
	}
	fail = false
	if _, err := file.Write([]byte("one")); !errors.Is(err, cause) {
		t.Errorf("the next write: %v", err)
	}
}

// Ensure that what is no file of this directory is refused by its own error, and that a file which a power loss left without
// its head is empty.
func TestFS_Open_heads(t *testing.T) {
	below := filestest.NewMem()
	fs := atrest.NewFS(below, atresttest.Ring())
	write(t, fs, "whole", []byte("content"))
	whole := content(below, "whole")
	changed := func(at int, to byte) []byte {
		b := bytes.Clone(whole)
		b[at] = to
		return b
	}
	other := filestest.NewMem()
	write(t, atrest.NewFS(other, atresttest.Ring()), "whole", []byte("content"))
	for _, row := range []struct {
		name string
		raw  []byte
		want error
	}{
		{"plain", bytes.Repeat([]byte("plain "), 30), atrest.ErrPlain},
		{"zeros", make([]byte, 100), atrest.ErrPlain},
		{"damaged key", changed(20, whole[20]^1), atrest.ErrDamagedHead},
		{"damaged salt", changed(60, whole[60]^1), atrest.ErrDamagedHead},
		{"damaged sum", changed(13, whole[13]^1), atrest.ErrDamagedHead},
		{"later", changed(8, 2), nil},
		{"another ring", content(other, "whole"), atrest.ErrNoKey},
	} {
		write(t, below, "file", row.raw)
		_, err := fs.Open("file")
		var path *os.PathError
		if err == nil || row.want != nil && !errors.Is(err, row.want) || !errors.As(err, &path) {
			t.Errorf("%s: %v", row.name, err)
		}
		if row.name == "later" && !strings.Contains(fmt.Sprint(err), "later build") {
			t.Errorf("later: %v", err)
		}
	}
	for length := range 64 {
		write(t, below, "file", whole[:length])
		file := must(fs.Open("file"))
		_, err := file.ReadAt(make([]byte, 1), 0)
		if info := must(fs.Stat("file")); len(content(fs, "file")) > 0 || info.Size() != 0 || err != io.EOF {
			t.Errorf("a file of %d bytes has content, or size %d: %v", length, info.Size(), err)
		}
	}
}
