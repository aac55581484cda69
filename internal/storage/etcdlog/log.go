package etcdlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
)

// Read reads the log in a directory. after is the last entry that the database has.
func Read(ctx context.Context, dir string, after consensus.Index) (*Log, error) {
	files, err := list(dir)
	if err != nil {
		return nil, err
	}
	r := reader{after: after}
	for i, name := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.file(filepath.Join(dir, name), i == len(files)-1); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
	}
	if r.log.Member == 0 {
		return nil, fmt.Errorf("%w: it does not say whose it is", ErrDamaged)
	}
	for _, matters := range r.matters {
		if matters {
			r.log.Missing++
		}
	}
	return &r.log, nil
}

// list returns the files in order. Their names are NUMBER-INDEX.wal, in hexadecimal; none may be missing in the middle.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".wal") {
			files = append(files, e.Name())
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoLog)
	}
	slices.Sort(files)
	var last uint64
	for i, name := range files {
		var number, index uint64
		if n, err := fmt.Sscanf(name, "%016x-%016x.wal", &number, &index); n != 2 || err != nil {
			return nil, fmt.Errorf("%w: file %s", ErrDamaged, name)
		}
		if i > 0 && number != last+1 {
			return nil, fmt.Errorf("%w: the file before %s is missing", ErrDamaged, name)
		}
		last = number
	}
	return files, nil
}
