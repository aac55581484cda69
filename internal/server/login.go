package server

import (
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/config"
)

// openLogin reads the keys that sign tokens, if files have them. useBytes are for the uses of other tokens.
func openLogin(c *config.Config, useBytes int64, logger *slog.Logger) (*login.Login, error) {
	keys, err := c.JWT()
	if err != nil {
		return nil, fmt.Errorf("--auth-token: %w", err)
	}
	l, err := login.New(login.Options{
		JWT: (*login.JWT)(keys), TTL: c.Auth.TokenTTL, UseBytes: useBytes, BcryptCost: c.Auth.BcryptCost,
		Clock: env.WallClock{}, Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("--auth-token: %w", err)
	}
	return l, nil
}
