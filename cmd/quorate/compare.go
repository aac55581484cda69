package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/keysource"
	"github.com/quorate/quorate/internal/storage/wal"
)

// place is where the data of another survivor lies, as --compare says it.
type place struct{ dataDir, walDir string }

// String is the value of --compare.
func (p place) String() string {
	if p.walDir == "" {
		return p.dataDir
	}
	return p.dataDir + "," + p.walDir
}

// parsePlace reads DIR or DIR,WAL-DIR. A text that may mean two things is refused: a survivor that is read wrongly is one
// whose writes are lost.
func parsePlace(text string) (place, error) {
	dataDir, walDir, split := strings.Cut(text, ",")
	switch {
	case dataDir == "" || split && walDir == "" || strings.Contains(walDir, ","):
		return place{}, fmt.Errorf("%w: --compare %s: write --compare DIR, or --compare DIR,WAL-DIR if the member has "+
			"--wal-dir; one --compare for each survivor", errUsage, text)
	case !split:
		return place{dataDir, ""}, nil
	case isDir(text):
		return place{}, fmt.Errorf("%w: --compare %s: a directory has this whole name, which may also mean the data "+
			"directory %s with its log in %s: name that directory by a link without a comma", errUsage, text, dataDir, walDir)
	case isDir(filepath.Join(walDir, "member")):
		return place{}, fmt.Errorf("%w: --compare %s: %s is a data directory, and no log: write --compare %s --compare "+
			"%s", errUsage,
			text, walDir, dataDir, walDir)
	}
	return place{dataDir, walDir}, nil
}

func isDir(path string) bool {
	stat, err := os.Stat(path)
	return err == nil && stat.IsDir()
}

func samePlace(a, b string) bool {
	first, err1 := os.Stat(a)
	second, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(first, second)
}

// readOthers reads the data of the other survivors of mine, which lies in dataDir. They are locked for that moment only.
func readOthers(
	ctx context.Context, places []place, dataDir string, keys keysource.Source, mine consensus.Identity,
) (others []*recovery.Survivor, err error) {
	for _, at := range places {
		if samePlace(at.dataDir, dataDir) {
			return nil, fmt.Errorf("--compare %v: is the directory of this member itself", at)
		}
		stopped, err := server.OpenToRead(ctx, at.dataDir, at.walDir, keys)
		if err != nil {
			return nil, fmt.Errorf("--compare: %s", strings.Replace(err.Error(), "--data-dir ", "", 1))
		}
		other, err := stopped.Inspect()
		if err = errors.Join(err, stopped.Close()); err != nil {
			return nil, at.explain(err)
		}
		switch {
		case other.Identity.Cluster != mine.Cluster:
			return nil, fmt.Errorf("--compare %v: belongs to cluster %v, and this member to cluster %v", at,
				other.Identity.Cluster, mine.Cluster)
		case other.Identity.Member == mine.Member:
			return nil, fmt.Errorf("--compare %v: is the data of this member itself, or a copy of it", at)
		}
		others = append(others, other)
	}
	return others, nil
}

// explain says where the log may be of a survivor that has none where it was looked for.
func (p place) explain(err error) error {
	if !errors.Is(err, wal.ErrNoLog) && !errors.Is(err, datadir.ErrLogElsewhere) {
		return fmt.Errorf("--compare %v: %w", p, err)
	}
	inside := filepath.Join(p.dataDir, "member", "wal")
	const keep = "Do not go on without it: it may hold acknowledged writes that the others lack"
	switch {
	case p.walDir == "":
		return fmt.Errorf("--compare %v: the log of this member is not in %s: it is in the --wal-dir of the member's unit. "+
			"Give that, too: --compare %s,WAL-DIR. %s", p, inside, p.dataDir, keep)
	case errors.Is(err, datadir.ErrLogElsewhere):
		return fmt.Errorf("--compare %v: %s holds no log; one is in %s: write --compare %s. "+
			"%s", p, p.walDir, inside, p.dataDir, keep)
	}
	return fmt.Errorf("--compare %v: %s holds no log: correct it, as the --wal-dir of the member's unit has it. "+
		"%s", p, p.walDir, keep)
}
