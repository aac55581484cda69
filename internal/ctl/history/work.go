package history

import (
	"errors"

	"github.com/quorate/quorate/internal/ctl/command"
)

// work is a call of the command.
type work struct {
	*command.Connection
	key    string
	limit  int64
	before int64
	prefix bool
}

// errUntold refuses a server without the service.
var errUntold = command.Refused(errors.New("this server does not tell the history of keys: it is an etcd, or an earlier " +
	"build of Quorate"))
