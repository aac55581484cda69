package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"syscall"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/engine"
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
	case errors.Is(err, wal.ErrNoSpace), errors.Is(err, engine.ErrNoSpace):
		return fmt.Errorf("%w; nothing is lost", err) // what to do is said already
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, transport.ErrAddressUsed):
		return fmt.Errorf("%w; stop the process that listens there, or choose another port", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w; the URL must name an address of this machine", err)
	case errors.As(err, &listener) && listener.Op == "listen" && errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; the user that runs this server may not listen there: ports below 1024 need root or "+
			"CAP_NET_BIND_SERVICE, and sockets a directory that the user may write to", err)
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

// replaceAdvice says how a member whose data is of no use gets new data. It names no way to mend the old: a directory in which
// one file is of another moment forgets what its member acknowledged, and nothing may tell.
func replaceAdvice(c config.Config) string {
	dirs := c.Storage.DataDir
	if c.Storage.WALDir != "" {
		dirs += " and " + c.Storage.WALDir
	}
	return fmt.Sprintf("Never put a file back from a copy: writes that this member acknowledged would be lost. If the "+
		"others serve, move %s aside, run `quorate member reset %s` against one that serves, and start this one with its "+
		"flags; else see `quorate recover --help`", dirs, typed.Word(c.Name))
}
