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
	"github.com/quorate/quorate/internal/storage/files"
)

// Read reads the log in a directory. after is the last entry that the database has.
func Read(ctx context.Context, dir string, after consensus.Index) (*Log, error) {
	segments, err := list(dir)
	if err != nil {
		return nil, err
	}
	r := reader{after: after}
	for i, name := range segments {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.file(filepath.Join(dir, name), i == len(segments)-1); err != nil {
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
	names, err := files.Disk.List(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var segments []string
	for _, name := range names {
		if strings.HasSuffix(name, ".wal") {
			segments = append(segments, name)
		}
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoLog)
	}
	slices.Sort(segments)
	var last uint64
	for i, name := range segments {
		var number, index uint64
		if n, err := fmt.Sscanf(name, "%016x-%016x.wal", &number, &index); n != 2 || err != nil {
			return nil, fmt.Errorf("%w: file %s", ErrDamaged, name)
		}
		if i > 0 && number != last+1 {
			return nil, fmt.Errorf("%w: the file before %s is missing", ErrDamaged, name)
		}
		last = number
	}
	return segments, nil
}
