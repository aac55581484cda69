package rpc

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
)

// KeyTools are the keys of the member's data directory.
type KeyTools struct {
	Status func() (*quoratepb.EncryptionStatus, error) // reads the first bytes of all files
	Rotate func(context.Context) error
}

// encryptionService is the native Encryption service. One call works at a time: each one looks at all files.
type encryptionService struct {
	quoratepb.UnsafeEncryptionServer
	tools *KeyTools // nil: the data directory is not encrypted
	turn  sync.Mutex
}

var (
	errNotEncrypted = status.Error(codes.FailedPrecondition, "the data directory of this member is not encrypted: "+
		"docs/encryption.md says how it becomes so")
	errKeysBusy = status.Error(codes.ResourceExhausted, "another call looks at the keys of this member: try again")
)

// Status returns the keys and what they have on disk.
func (e *encryptionService) Status(
	context.Context, *quoratepb.EncryptionStatusRequest,
) (*quoratepb.EncryptionStatus, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.turn.Unlock()
	return e.status()
}

func (e *encryptionService) status() (*quoratepb.EncryptionStatus, error) {
	answer, err := e.tools.Status()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return answer, nil
}

// Rotate begins a new key.
func (e *encryptionService) Rotate(
	ctx context.Context, _ *quoratepb.RotateKeyRequest,
) (*quoratepb.EncryptionStatus, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.turn.Unlock()
	if err := e.tools.Rotate(ctx); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return e.status()
}

func (e *encryptionService) enter() error {
	if e.tools == nil {
		return errNotEncrypted
	}
	if !e.turn.TryLock() {
		return errKeysBusy
	}
	return nil
}
