-- SPDX-License-Identifier: BSD-3-Clause
-- A Snabb app network of patches, for `snabb snsh`: an app for each port, a link each way of each pair (conext19).
--
--   snabb snsh snabb_patch.lua PORT... PAIR...      v0=vhost:/run/v0.sock n0=raw:eth1 ... n0-v0
--   PB_MEMORY=huge|small
--
-- Four things differ from Snabb's own ways, all because of who is on the other side, and none on the path of packets:
-- VIRTIO_F_VERSION_1 is offered (a driver of today may ask for it); a port listens without blocking (two that
-- block on each other's connection never come up) and looks for messages every 10 ms, not 500; features are not kept in
-- /tmp; packet memory is anonymous, as there is no NIC that needs its physical address: nothing of it stays behind.
local ffi = require("ffi")
local C = ffi.C
local S = require("syscall")
local main = require("core.main")
local memory = require("core.memory")

local huge = os.getenv("PB_MEMORY") == "huge"
local next_chunk = 0x510000000000ULL -- has the bits of Snabb's DMA tag; which address it is does not matter else

function memory.allocate_next_chunk ()
   local size = memory.huge_page_size
   local flags = "private, anonymous, fixed" .. (huge and ", hugetlb" or "")
   local pointer = assert(S.mmap(ffi.cast("void*", next_chunk), size, "read, write", flags, nil, 0))
   next_chunk = next_chunk + size
   memory.chunks[#memory.chunks + 1] = {
      pointer = ffi.cast("char*", pointer), physical = memory.virtual_to_physical(pointer), size = size, used = 0 }
end

local config = require("core.config")
local timer = require("core.timer")
local vhost = require("apps.vhost.vhost_user").VhostUser
local device = require("lib.virtio.net_device").VirtioNetDevice

local device_new = device.new
function device:new (...)
   local o = device_new(self, ...)
   o.supported_features = o.supported_features + 2^32
   return o
end

-- Virtio 1.2, 5.1.6: with VIRTIO_F_VERSION_1 the header has num_buffers, whether buffers are mergeable or not.
local set_features = device.set_features
function device:set_features (features)
   set_features(self, features)
   if features >= 2^32 then
      self.hdr_type = ffi.typeof("struct virtio_net_hdr_mrg_rxbuf *")
      self.hdr_size = ffi.sizeof("struct virtio_net_hdr_mrg_rxbuf")
   end
end

local Port = {}

function Port:new (args)
   local o = vhost.new(vhost, args)
   local listener = C.vhost_user_listen(args.socket_path)
   assert(listener >= 0, "cannot listen on " .. args.socket_path)
   assert(S.fcntl(listener, "setfl", "nonblock"))
   function o:qemu_connect () return C.vhost_user_accept(listener) end
   function o:update_features (features) return features end
   o.process_qemu_timer = timer.new("vhost " .. args.socket_path, function () o:process_qemu_requests() end, 1e7,
                                    "non-repeating")
   return o
end

local network = config.new()
local pairs_of_ports = {}
for _, word in ipairs(main.parameters) do
   local name, kind, where = word:match("^(%w+)=(%w+):(.+)$")
   if kind == "vhost" then
      config.app(network, name, Port, {
         socket_path = where,
         disable_indirect_desc = true })
   elseif kind == "raw" then
      config.app(network, name, require("apps.socket.raw").RawSocket, where)
   else
      pairs_of_ports[#pairs_of_ports + 1] = { word:match("^(%w+)-(%w+)$") }
   end
end
for _, pair in ipairs(pairs_of_ports) do
   config.link(network, pair[1] .. ".tx -> " .. pair[2] .. ".rx")
   config.link(network, pair[2] .. ".tx -> " .. pair[1] .. ".rx")
end

engine.busywait = true -- else it sleeps up to 100 us
engine.configure(network)
print("forwarding, pid " .. S.getpid())
io.flush()
engine.main({ no_report = true })
