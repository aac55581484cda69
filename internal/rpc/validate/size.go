package validate

import (
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/rpc/wire"
)

// headerBytes is what etcd puts before a request in its log without authentication: a header with an id of ten bytes. Its
// own ids take nine or ten.
const headerBytes = 14

// Size refuses a request of size bytes, as it came, if etcd's log entry of it would exceed limit.
func Size(size, limit int) error {
	if headerBytes+wire.SizeMessage(size) > limit {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}
