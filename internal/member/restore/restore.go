package restore

import (
	"context"
	"fmt"
	"os"

	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

// maxBump keeps revisions far from their end. etcd's advice is a billion.
const maxBump = 1 << 60

func (r *Request) checkBump() error {
	if r.BumpRevision > maxBump {
		return fmt.Errorf("--bump-revision %d is too large: 1000000000 is more than a cluster writes in a day", r.BumpRevision)
	}
	return nil
}

// Run makes the directory that options name.
func Run(ctx context.Context, options datadir.Options, r *Request) (*Result, error) {
	if err := r.checkBump(); err != nil {
		return nil, err
	}
	if info, err := os.Stat(r.File); err == nil && info.IsDir() {
		etcd, err := OpenEtcd(ctx, r.File, r.LogDir)
		if err != nil {
			return nil, err
		}
		defer etcd.Close()
		return run(ctx, options, r, etcd.file, "")
	}
	file, err := etcdbackup.Open(r.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if !r.SkipHashCheck {
		if err := file.Verify(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", r.File, err)
		}
	}
	return run(ctx, options, r, file, "")
}
