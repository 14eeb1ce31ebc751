#include "plugin/runtime/transfer_manager.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plugin/runtime/error.h"
#include "plugin/runtime/strided_copy.h"

namespace treadle {

TransferManager::TransferManager(Memory& memory, std::span<const Shape> shapes) : memory_(memory) {
  for (const Shape& shape : shapes) {
    Entry& entry = entries_.emplace_back();
    entry.type = shape.type;
    entry.dims = Dims(shape.dims);
    entry.buffer = Buffer::Pending(memory, shape.type, shape.dims, Event::Pending());
    entry.contents = entry.buffer->Contents();
  }
}

TransferManager::~TransferManager() {
  for (const Entry& entry : entries_) {
    entry.contents.ready->SetError(Error(
        StatusCode::kCancelled, "the transfer manager was destroyed before the last transfer"));
  }
}

const TransferManager::Entry& TransferManager::At(int index) const {
  if (index < 0 || static_cast<size_t>(index) >= entries_.size()) {
    throw InvalidArgument("buffer index ", index, " of a transfer of ", entries_.size(),
                          " buffers");
  }
  return entries_[static_cast<size_t>(index)];
}

TransferManager::Entry& TransferManager::At(int index) {
  return const_cast<Entry&>(std::as_const(*this).At(index));
}

size_t TransferManager::BufferSize(int index) const { return At(index).contents.storage->size(); }

std::unique_ptr<Buffer> TransferManager::Retrieve(int index) {
  Entry& entry = At(index);
  const std::lock_guard lock(mutex_);
  if (entry.buffer == nullptr) {
    throw FailedPrecondition("buffer ", index, " has been retrieved before");
  }
  return std::move(entry.buffer);
}

void TransferManager::Transfer(int index, const void* data, int64_t offset, int64_t size,
                               bool last) {
  const BufferContents& contents = At(index).contents;
  const auto whole = static_cast<int64_t>(contents.storage->size());
  if (offset < 0 || size < 0 || offset > whole || size > whole - offset) {
    throw InvalidArgument("a transfer of ", size, " bytes at ", offset, " to a buffer of ", whole);
  }
  if (contents.ready->IsReady()) {
    throw FailedPrecondition("buffer ", index, " has had its last transfer");
  }
  if (size != 0) {
    std::memcpy(static_cast<char*>(contents.storage->data()) + offset, data,
                static_cast<size_t>(size));
  }
  if (last) contents.ready->SetReady();
}

void TransferManager::TransferArray(int index, ElementType type, std::span<const int64_t> dims,
                                    HostArray host) {
  const Entry& entry = At(index);
  if (type != entry.type || !std::ranges::equal(dims, entry.dims.span())) {
    throw InvalidArgument("buffer ", index, ": expected ", ShapeName(entry.type, entry.dims.span()),
                          ", got ", ShapeName(type, dims));
  }
  if (entry.contents.ready->IsReady()) {
    throw FailedPrecondition("buffer ", index, " has had its last transfer");
  }
  const size_t element = ElementBytes(type);
  const std::vector<int64_t> dense = DenseStrides(dims, element);
  StridedCopy(dims, element, host.data,
              host.byte_strides.empty() ? std::span<const int64_t>(dense) : host.byte_strides,
              entry.contents.storage->data(), dense);
  entry.contents.ready->SetReady();
}

void TransferManager::SetError(int index, Error error) {
  At(index).contents.ready->SetError(std::move(error));
}

}  // namespace treadle
