package apply

import (
	"sync/atomic"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/storage/engine"
)

// authTable holds users and roles. The goroutine that calls Apply changes it; any goroutine may read it.
type authTable struct{ state atomic.Pointer[auth.State] }

func (t *authTable) load(eng engine.Engine) error {
	state := auth.New()
	err := scan(eng, []byte{tableState, rowAuth}, func(rest, value []byte) error {
		return state.Load(rest, value)
	})
	if err == nil {
		err = state.Loaded()
	}
	t.state.Store(state)
	return err
}

func (t *authTable) change(w rowWriter, c *auth.Change) error {
	next, rows, err := t.state.Load().Next(c)
	if err != nil {
		return err
	}
	for i := range rows {
		key := append([]byte{tableState, rowAuth}, rows[i].Key...)
		if rows[i].Value == nil {
			w.DeleteRaw(key)
			continue
		}
		w.Set(key, rows[i].Value)
	}
	t.state.Store(next)
	return nil
}
