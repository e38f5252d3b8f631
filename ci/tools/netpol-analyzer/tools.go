//go:build tools

package tools

import _ "github.com/np-guard/netpol-analyzer/cmd/netpolicy"
