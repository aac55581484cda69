package server

import (
	"context"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// rotatePatience bounds how long a rotation waits for a key service.
const rotatePatience = 10 * time.Second

// keyTools is what the Encryption service does; nil if the data directory is not encrypted.
func (s *Server) keyTools() *rpc.KeyTools {
	if s.disk.keys == nil {
		return nil
	}
	return &rpc.KeyTools{Status: s.keyStatus, Rotate: s.rotateKey}
}

// keyStatus counts the files of each key, which reads the first bytes of all of them.
func (s *Server) keyStatus() (*quoratepb.EncryptionStatus, error) {
	dirs := []string{filepath.Join(s.cfg.Storage.DataDir, memberDir)}
	if s.cfg.Storage.WALDir != "" {
		dirs = append(dirs, s.cfg.Storage.WALDir)
	}
	used, plain, err := atrest.Usages(s.disk.below, dirs, wal.KeyOf)
	if err != nil {
		return nil, err
	}
	keys, active, wrapped := s.disk.keys.Keys()
	status := &quoratepb.EncryptionStatus{
		Provider: wrapped.Provider, WrappedBy: wrapped.KeyID, PlainBytes: plain.Bytes, Member: uint64(s.data.Identity.Member),
	}
	for _, key := range keys {
		status.Keys = append(status.Keys, &quoratepb.DataKey{
			Id: key.ID.String(), CreatedSeconds: key.Created.Unix(), Active: key == active,
			Files: used[key.ID].Files, Bytes: used[key.ID].Bytes,
		})
	}
	return status, nil
}

// watchKeys begins to check whether the next start would find the keys.
func (s *Server) watchKeys() {
	if s.disk.keys == nil {
		return
	}
	s.keys = &keyCheck{fs: s.disk.below, dataDir: s.cfg.Storage.DataDir, ring: s.disk.keys, source: sourceOf(&s.cfg.Encryption),
		logger: s.logger}
	s.wg.Go(func() {
		ticker := time.NewTicker(checkKeysEvery)
		defer ticker.Stop()
		for {
			s.keys.lookAgain(s.ctx)
			select {
			case <-ticker.C:
			case <-s.ctx.Done():
				return
			}
		}
	})
}

// keyMetrics counts the files of each key, for metrics and observations together.
func (s *Server) keyMetrics() *keyMetrics {
	s.keysOnce.Do(func() {
		s.keysCounted = &keyMetrics{count: s.keyStatus, spawn: func(count func()) { s.wg.Go(count) }}
	})
	return s.keysCounted
}

// observedEncryption is how the data directory is encrypted, with what was counted last.
func (s *Server) observedEncryption() *quoratepb.ObservedEncryption {
	if s.disk.keys == nil {
		return &quoratepb.ObservedEncryption{}
	}
	keys, active, wrapped := s.disk.keys.Keys()
	o := &quoratepb.ObservedEncryption{Encrypted: true, Provider: wrapped.Provider, Key: active.ID.String(),
		CreatedMs: active.Created.UnixMilli(), Keys: int64(len(keys))}
	counted := s.keyMetrics().latest(time.Now())
	if o.Counted = counted != nil; !o.Counted {
		return o
	}
	o.PlainBytes = counted.GetPlainBytes()
	for _, key := range counted.GetKeys() {
		if key.GetId() == o.Key {
			o.Bytes = key.GetBytes()
		} else {
			o.FormerBytes += key.GetBytes()
		}
	}
	return o
}

func (s *Server) rotateKey(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rotatePatience)
	defer cancel()
	key, err := sourceOf(&s.cfg.Encryption).Rotate(ctx, s.disk.keys, time.Now())
	if err == nil {
		s.logger.Info("rotated the keys of the data directory: new files have a new key", "key", key.ID.String())
	}
	return err
}
