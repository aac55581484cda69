package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// makeArchive packs the program, its documents and the inputs of a packager into one directory, which is named after the file.
func (r *Release) makeArchive(ctx context.Context, target Target, path string) (err error) {
	items, err := r.items(ctx, target)
	if err != nil {
		return err
	}
	items = slices.DeleteFunc(items, func(i Item) bool {
		return i.Plain == "" || target.OS != "linux" && strings.HasPrefix(i.Plain, "systemd/")
	})
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Plain, b.Plain) })
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := &tarWriter{tar.NewWriter(packed), r.Time}
	root := r.Product.Name + "-" + r.Version.Number() + "/"
	for _, i := range items {
		if err := w.copy(root+i.Plain, i.From, i.Mode); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), packed.Close())
}

// tarWriter writes entries that have one owner, one time and nothing of the machine.
type tarWriter struct {
	*tar.Writer
	at time.Time
}

func (w *tarWriter) header(kind byte, name string, mode os.FileMode, size int64) *tar.Header {
	return &tar.Header{Typeflag: kind, Name: name, Mode: int64(mode), Size: size, ModTime: w.at, Format: tar.FormatUSTAR}
}

// copy adds a file of this machine.
func (w *tarWriter) copy(name, from string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	stat, err := in.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(w.header(tar.TypeReg, name, mode, stat.Size())); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}

// add adds a file of some bytes.
func (w *tarWriter) add(name string, content []byte, mode os.FileMode) error {
	if err := w.WriteHeader(w.header(tar.TypeReg, name, mode, int64(len(content)))); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
