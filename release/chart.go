package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// chartFile is what Helm knows a chart by.
const chartFile = "Chart.yaml"

// Annotations of a chart, by which it is made again.
const (
	commitAnnotation = "io.quorate.commit"
	timeAnnotation   = "io.quorate.time"
)

// makeChart packs a chart as Helm reads it: its file first, then the others by their paths.
func (r *Release) makeChart(dir, to string) (err error) {
	root := filepath.Join(r.Tree.Dir, filepath.FromSlash(dir))
	var names []string
	if err := filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, filepath.ToSlash(strings.TrimPrefix(at, root+string(filepath.Separator))))
		}
		return err
	}); err != nil {
		return err
	}
	slices.Sort(names)
	about, err := os.ReadFile(filepath.Join(root, chartFile))
	if err != nil {
		return err
	}
	if about, err = r.describe(about, path.Base(dir)); err != nil {
		return err
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := &tarWriter{tar.NewWriter(packed), r.Time}
	name := path.Base(dir) + "/"
	if err := w.add(name+chartFile, about, 0o644); err != nil {
		return err
	}
	for _, n := range names {
		if n == chartFile {
			continue
		}
		if err := w.copy(name+n, filepath.Join(root, n), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), packed.Close())
}

var chartVersion = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// describe gives the file of a chart the version of the release, and the annotations by which it is made again.
func (r *Release) describe(about []byte, name string) ([]byte, error) {
	if found := len(chartVersion.FindAll(about, -1)); found != 2 {
		return nil, fmt.Errorf("%s of %s: %d lines are version: or appVersion:, and each has to be there once",
			chartFile, name, found)
	}
	if bytes.Contains(about, []byte("\nannotations:")) {
		return nil, fmt.Errorf("%s of %s: has annotations: the release writes them", chartFile, name)
	}
	about = chartVersion.ReplaceAll(bytes.TrimSpace(about), []byte("${1}: "+r.Version.Number()))
	return fmt.Appendf(about, "\nannotations:\n  %s: %s\n  %s: %q\n  %s: %s\n  %s: %q\n", commitAnnotation, r.Tree.Commit,
		timeAnnotation, r.Time.Format(time.RFC3339), goAnnotation, r.Go.version, dirtyAnnotation, fmt.Sprint(r.Tree.Dirty)), nil
}
