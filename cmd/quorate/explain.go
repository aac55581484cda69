package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/keysource"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// numberOrText keeps a setting that is a number a number in the log, where etcd's tools look for it.
func numberOrText(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return text
}

// explain adds to an error that ended the server what the operator can do about it.
func explain(c config.Config, err error) error {
	var listener *net.OpError
	switch {
	case errors.Is(err, wal.ErrNoLog):
		return fmt.Errorf("%w. Only if the log is lost for ever: %s", err, replaceAdvice(c))
	case datadir.Damaged(err):
		return fmt.Errorf("%w. %s", err, replaceAdvice(c))
	case keysLost(err):
		return fmt.Errorf("%w. Put the key file (or %s, in its newest state) back, or correct the flag. If it is lost for "+
			"ever, this member's data are, too: if the others serve, %s; else a backup has the data (`quorate restore "+
			"--help`). Nothing was changed", err, filepath.Join(c.Storage.DataDir, atrest.RingFile), c.StartOver("a new key, "))
	case errors.Is(err, wal.ErrNoSpace), errors.Is(err, engine.ErrNoSpace):
		return fmt.Errorf("%w; nothing is lost", err) // what to do is said already
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, transport.ErrAddressUsed):
		return fmt.Errorf("%w; stop the process that listens there, or choose another port", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w; the URL must name an address of this machine", err)
	case errors.As(err, &listener) && listener.Op == "listen" && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; the user that runs this server may not listen there: ports below 1024 need root or "+
			"CAP_NET_BIND_SERVICE, and sockets a directory that the user may write to", err)
	case elsewhere(c, err) && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; give the user that runs this server access to it", err)
	case elsewhere(c, err): // what to do in the data directory would be told of another file
		return err
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; make %s writable for the user that runs this server", err, c.Storage.DataDir)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w; make room on the disk of %s and start again, nothing is lost", err, c.Storage.DataDir)
	case errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%w; raise the limit of this process on the size of files (ulimit -f) and start again, nothing "+
			"is lost", err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; --data-dir %s must be on a disk that can be written to", err, c.Storage.DataDir)
	}
	return err
}

// elsewhere reports whether an error names a file outside of the directories of the member.
func elsewhere(c config.Config, err error) bool {
	var of *fs.PathError
	if !errors.As(err, &of) {
		return false
	}
	path, absErr := filepath.Abs(of.Path)
	if absErr != nil {
		return false
	}
	for _, dir := range []string{c.Storage.DataDir, c.Storage.WALDir} {
		if dir == "" {
			continue
		}
		own, err := filepath.Abs(dir)
		if err == nil && (path == own || strings.HasPrefix(path, own+string(filepath.Separator))) {
			return false
		}
	}
	return true
}

// replaceAdvice says how a member whose data is of no use gets new data. It names no way to mend the old: a directory in which
// one file is of another moment forgets what its member acknowledged, and nothing may tell.
func replaceAdvice(c config.Config) string {
	return fmt.Sprintf("Never put a file back from a copy: writes that this member acknowledged would be lost. If the "+
		"others serve, %s; else see `quorate recover --help`", c.StartOver(""))
}

// keysLost reports whether an encrypted data directory cannot be opened since its keys are gone or damaged.
func keysLost(err error) bool {
	for _, is := range []error{keysource.ErrNoKeyFile, atrest.ErrOtherKey, atrest.ErrDamagedRing, atrest.ErrEncrypted} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}
