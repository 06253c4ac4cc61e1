package outbound

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

type policy struct{ allowPrivate bool }

// control checks each address just before a connection to it is made.
func (p policy) control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: the network must be TCP", ErrRefused)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: not an address", ErrRefused)
	}
	if reason := p.refuses(at.Addr()); reason != "" {
		return fmt.Errorf("%w: the address is %s", ErrRefused, reason)
	}
	return nil
}

// refuses returns what kind of address addr is if it is refused; empty if it is allowed.
func (p policy) refuses(addr netip.Addr) string {
	addr = addr.WithZone("").Unmap()
	if inner, ok := embedded(addr); ok {
		addr = inner
	}
	within := func(n netip.Prefix) bool { return n.Contains(addr) }
	switch {
	case slices.Contains(metadata, addr):
		return "a cloud's metadata service"
	case slices.ContainsFunc(private, within):
		if p.allowPrivate {
			return ""
		}
		return "a private network"
	case slices.ContainsFunc(special, within), addr.Is6() && !global6.Contains(addr):
		return "an address of special use"
	}
	return ""
}

// embedded returns the IPv4 address that an IPv6 address of a translator or tunnel (NAT64, 6to4) leads to. Other IPv6
// addresses with an IPv4 address inside are refused as special or as not global.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return addr, false
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return addr, false
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour = netip.MustParsePrefix("2002::/16")    // RFC 3056

	// global6 is the part of IPv6 that is assigned to global unicast.
	global6 = netip.MustParsePrefix("2000::/3")

	// private are the networks that AllowPrivate permits.
	private = prefixes(
		"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // RFC 1918
		"127.0.0.0/8", "::1/128", // loopback
		"100.64.0.0/10", // carrier-grade NAT, RFC 6598
		"fc00::/7",      // RFC 4193
	)

	// special are the networks that are always refused: IANA's special-purpose registries (RFC 6890) without those in
	// private.
	special = prefixes(
		"0.0.0.0/8",                                         // this network; 0.0.0.0 connects to loopback
		"169.254.0.0/16",                                    // link-local
		"192.0.0.0/24",                                      // protocol assignments
		"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // documentation
		"192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", // AS112 and AMT
		"192.88.99.0/24",    // 6to4 relays
		"198.18.0.0/15",     // benchmarks
		"224.0.0.0/4",       // multicast
		"240.0.0.0/4",       // reserved, and the broadcast address
		"2001::/23",         // protocol assignments; includes Teredo, which embeds IPv4 addresses
		"2001:db8::/32",     // documentation
		"3fff::/20",         // documentation
		"2620:4f:8000::/48", // AS112
	)

	// metadata are the services from which a cloud's machines get credentials, as far as their addresses are in no
	// special range or in a private one.
	metadata = []netip.Addr{
		netip.MustParseAddr("168.63.129.16"),   // Azure
		netip.MustParseAddr("100.100.100.200"), // Alibaba
		netip.MustParseAddr("fd00:ec2::254"),   // AWS
		netip.MustParseAddr("fd20:ce::254"),    // Google
		netip.MustParseAddr("fd00:42::42"),     // Scaleway
	}
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}
