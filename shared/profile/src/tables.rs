//! Tables whose rows refer to each other by number.

mod row_map;
mod stack_tree;
mod table;

pub use row_map::RowMap;
pub use stack_tree::{StackId, StackOrder, StackTree, Stacks, Translation};
pub use table::{Id, Table};
