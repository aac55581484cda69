package server

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/config"
)

func TestOpenLogin(t *testing.T) {
	c := config.Default()
	if l, err := openLogin(&c, 0, slog.New(slog.DiscardHandler)); err != nil || l == nil {
		t.Errorf("by default: got %v, %v", l, err)
	}
	c.Auth.Token = "jwt,sign-method=RS256,priv-key=" + filepath.Join(t.TempDir(), "absent.pem")
	_, err := openLogin(&c, 0, slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasPrefix(err.Error(), "--auth-token: priv-key ") || !strings.HasSuffix(err.Error(), "no such file or directory") {
		t.Errorf("a file that is not there: got %v", err)
	}
}
