"""Which attributes a VHLO op has, and of which kinds.

In VHLO an attribute of an op may be anything; its conversion to StableHLO trusts that it is what the
writer wrote. An attribute's name tells its kind, in every op that has it. An op's properties are
encoded as its attributes, one after the other, in the order of their names.
"""

from __future__ import annotations

from collections.abc import Mapping

# Codes of attributes in VHLO's bytecode.
ARRAY = 1
BOOLEAN = 2
COMPARISON_DIRECTION = 3
COMPARISON_TYPE = 4
API_VERSION = 5
DICTIONARY = 6
FFT_TYPE = 7
FLOAT = 8
INTEGER = 9
RNG_ALGORITHM = 12
RNG_DISTRIBUTION = 13
STRING = 14
TENSOR = 15
TRANSPOSE = 16
TYPE = 17
RESULT_ACCURACY = 20
MESH_AXES = 23

# Kinds -> the attributes that are of one of them. `dot_general` says "no algorithm" by a type (none)
# in the place of each part of it.
_NAMES: Mapping[tuple[int, ...], str] = {
    (TENSOR,): """
        base_dilations broadcast_dimensions broadcast_sizes collapsed_slice_dims dimensions
        edge_padding_high edge_padding_low fft_length input_batching_dims input_spatial_dimensions
        inserted_window_dims interior_padding kernel_spatial_dimensions lhs_batching_dimensions
        lhs_contracting_dimensions lhs_dilation limit_indices offset_dims operand_batching_dims
        output_spatial_dimensions padding permutation rhs_batching_dimensions rhs_contracting_dimensions
        rhs_dilation scatter_dims_to_operand_dims scatter_indices_batching_dims slice_sizes
        source_target_pairs start_index_map start_indices start_indices_batching_dims strides
        update_window_dims value window_dilations window_dimensions window_reversal window_strides
    """,
    (INTEGER,): """
        all_gather_dim batch_group_count channel_id concat_dimension dimension exponent_bits
        feature_group_count index index_vector_dim input_batch_dimension input_feature_dimension
        iota_dimension kernel_input_feature_dimension kernel_output_feature_dimension mantissa_bits
        output_batch_dimension output_feature_dimension scatter_dimension split_count split_dimension
        version
    """,
    (STRING,): "call_target_name callee decomposition name sym_name sym_visibility",
    (BOOLEAN,): """
        has_side_effect indices_are_sorted is_stable left_side lower unique_indices unit_diagonal
        use_global_device_ids
    """,
    (ARRAY,): """
        arg_attrs called_computations operand_layouts output_operand_aliases precision_config res_attrs
        result_layouts
    """,
    (TYPE,): "accumulation_type function_type lhs_precision_type rhs_precision_type",
    (INTEGER, TYPE): "lhs_component_count num_primitive_operations rhs_component_count",
    (BOOLEAN, TYPE): "allow_imprecise_accumulation",
    (API_VERSION,): "api_version",
    (STRING, DICTIONARY): "backend_config",
    (COMPARISON_TYPE,): "compare_type",
    (COMPARISON_DIRECTION,): "comparison_direction",
    (DICTIONARY,): "composite_attributes",
    (FFT_TYPE,): "fft_type",
    (TENSOR, MESH_AXES): "replica_groups",
    (RESULT_ACCURACY,): "result_accuracy",
    (RNG_ALGORITHM,): "rng_algorithm",
    (RNG_DISTRIBUTION,): "rng_distribution",
    (TRANSPOSE,): "transpose_a",
}

KINDS: Mapping[str, tuple[int, ...]] = {name: kinds for kinds, names in _NAMES.items() for name in names.split()}

_ATTRIBUTES: Mapping[str, str] = {
    "all_gather_v2": "all_gather_dim channel_id replica_groups use_global_device_ids",
    "all_reduce_v2": "channel_id replica_groups use_global_device_ids",
    "all_to_all_v2": "channel_id concat_dimension replica_groups split_count split_dimension",
    "broadcast_in_dim_v1": "broadcast_dimensions",
    "broadcast_v1": "broadcast_sizes",
    "call_v1": "callee",
    "cholesky_v1": "lower",
    "collective_permute_v1": "channel_id source_target_pairs",
    "compare_v1": "compare_type comparison_direction",
    "composite_v1": "composite_attributes decomposition name version",
    "composite_v2": "composite_attributes decomposition name version",
    "concatenate_v1": "dimension",
    "constant_v1": "value",
    "convolution_v1": """
        batch_group_count feature_group_count input_batch_dimension input_feature_dimension
        input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension
        kernel_spatial_dimensions lhs_dilation output_batch_dimension output_feature_dimension
        output_spatial_dimensions padding precision_config rhs_dilation window_reversal window_strides
    """,
    "custom_call_v1": """
        api_version backend_config call_target_name called_computations has_side_effect operand_layouts
        output_operand_aliases result_layouts
    """,
    "dot_general_v2": """
        accumulation_type allow_imprecise_accumulation lhs_batching_dimensions lhs_component_count
        lhs_contracting_dimensions lhs_precision_type num_primitive_operations precision_config
        rhs_batching_dimensions rhs_component_count rhs_contracting_dimensions rhs_precision_type
    """,
    "dynamic_slice_v1": "slice_sizes",
    "fft_v1": "fft_length fft_type",
    "func_v1": "arg_attrs function_type res_attrs sym_name sym_visibility",
    "gather_v2": """
        collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims operand_batching_dims
        slice_sizes start_index_map start_indices_batching_dims
    """,
    "get_dimension_size_v1": "dimension",
    "get_tuple_element_v1": "index",
    "iota_v1": "iota_dimension",
    "map_v1": "dimensions",
    "pad_v1": "edge_padding_high edge_padding_low interior_padding",
    "reduce_precision_v1": "exponent_bits mantissa_bits",
    "reduce_scatter_v1": "channel_id replica_groups scatter_dimension use_global_device_ids",
    "reduce_v1": "dimensions",
    "reduce_window_v1": "base_dilations padding window_dilations window_dimensions window_strides",
    "reverse_v1": "dimensions",
    "rng_bit_generator_v1": "rng_algorithm",
    "rng_v1": "rng_distribution",
    "scatter_v2": """
        index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims
        scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices update_window_dims
    """,
    "select_and_scatter_v1": "padding window_dimensions window_strides",
    "set_dimension_size_v1": "dimension",
    "slice_v1": "limit_indices start_indices strides",
    "sort_v1": "dimension is_stable",
    "transpose_v1": "permutation",
    "triangular_solve_v1": "left_side lower transpose_a unit_diagonal",
}

# Ops of which nothing but an accuracy is said.
_FUNCTIONS = """
    cbrt_v2 cosine_v2 exponential_minus_one_v2 exponential_v2 log_plus_one_v2 log_v2 logistic_v2
    rsqrt_v2 sine_v2 sqrt_v2 tan_v2 tanh_v2
"""

# Op -> the names of its attributes in order. An op that is not here is not checked.
PROPERTIES: Mapping[str, tuple[str, ...]] = {
    **{f"vhlo.{op}": tuple(sorted(names.split())) for op, names in _ATTRIBUTES.items()},
    **{f"vhlo.{op}": ("result_accuracy",) for op in _FUNCTIONS.split()},
}
