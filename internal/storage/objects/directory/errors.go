package directory

import (
	"errors"
	"os"
	"syscall"

	"github.com/quorate/quorate/internal/storage/objects"
)

// kinds are errors of file systems, of those of the network, too, as callers tell them apart.
var kinds = []struct{ is, kind error }{
	{syscall.ENOSPC, objects.ErrFull},
	{syscall.EDQUOT, objects.ErrFull},
	{os.ErrPermission, objects.ErrUser},
	{syscall.EROFS, objects.ErrReadOnly},
	{syscall.ESTALE, objects.ErrBusy},
	{syscall.ETIMEDOUT, objects.ErrBusy},
	{syscall.EAGAIN, objects.ErrBusy},
	{syscall.EHOSTDOWN, objects.ErrUnreachable},
	{syscall.ENOTCONN, objects.ErrUnreachable},
}

// hasNoLinks tells whether an error of a link means that the file system has none, or no more of this file.
func hasNoLinks(err error) bool {
	for _, is := range []error{syscall.EPERM, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EMLINK} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// isAbsent tells whether an error means that nothing has this name, or that a file is where the name has a directory.
func isAbsent(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
